//! The plain settings files of the CLI: its own configuration and the lock file.
//!
//! They are blocks, texts and lists of texts. Names of settings may be quoted (`"hashicorp/time" = "…"`), which the
//! language's parser refuses; and a lock file comes from whoever made the template, so reading one must not be able to
//! exhaust the stack, as a recursive parser would.

/// The line, and what is wrong there.
pub type Fault = (usize, String);

pub fn parse(text: &str) -> Result<Vec<Item>, Fault> {
    let mut tokens = tokens(text)?;
    tokens.reverse();
    Parser { tokens, line: 1 }.items(None)
}

/// A setting (`key = value`) or a block (`key "label" { … }`).
#[derive(Debug)]
pub struct Item {
    pub key: String,
    pub labels: Vec<String>,
    pub line: usize,
    value: Setting,
}

#[derive(Debug)]
enum Setting {
    Text(String),
    Texts(Vec<String>),
    Block(Vec<Item>),
    /// Anything else; nothing here needs it.
    Other,
}

impl Item {
    pub fn block(self) -> Result<Vec<Item>, Fault> {
        match self.value {
            Setting::Block(items) => Ok(items),
            _ => Err((self.line, format!("{:?} must be a block", self.key))),
        }
    }

    pub fn text(self) -> Result<String, Fault> {
        match self.value {
            Setting::Text(text) => Ok(text),
            _ => Err((self.line, format!("{:?} must be a text", self.key))),
        }
    }

    pub fn texts(self) -> Result<Vec<String>, Fault> {
        match self.value {
            Setting::Texts(texts) => Ok(texts),
            _ => Err((self.line, format!("{:?} must be a list of texts", self.key))),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Word(String),
    Mark(char),
}

struct Parser {
    /// With their lines, the next one last.
    tokens: Vec<(usize, Token)>,
    line: usize,
}

/// Deeper than any real file, and no danger to the stack.
const MAX_DEPTH: usize = 32;

impl Parser {
    fn next(&mut self) -> Option<Token> {
        self.tokens.pop().map(|(line, token)| {
            self.line = line;
            token
        })
    }

    fn fault<T>(&self, detail: &str) -> Result<T, Fault> {
        Err((self.line, detail.to_owned()))
    }

    /// Settings up to the end of the file, or of the block at this depth.
    fn items(&mut self, depth: Option<usize>) -> Result<Vec<Item>, Fault> {
        let mut items = Vec::new();
        loop {
            let key = match self.next() {
                Some(Token::Text(key) | Token::Word(key)) => key,
                Some(Token::Mark('}')) if depth.is_some() => return Ok(items),
                Some(Token::Mark(',')) => continue,
                None if depth.is_none() => return Ok(items),
                None => return self.fault("the file ends inside of a block"),
                Some(Token::Mark(mark)) => return self.fault(&format!("{mark:?} is not expected here")),
            };
            let (line, deeper) = (self.line, depth.unwrap_or(0) + 1);
            let mut labels = Vec::new();
            let value = loop {
                match self.next() {
                    Some(Token::Text(label)) => labels.push(label),
                    Some(Token::Mark('=')) if labels.is_empty() => break self.value(deeper)?,
                    Some(Token::Mark('{')) => break Setting::Block(self.block(deeper)?),
                    _ => return self.fault(&format!("{key:?} is neither a setting nor a block")),
                }
            };
            items.push(Item { key, labels, line, value });
        }
    }

    fn block(&mut self, depth: usize) -> Result<Vec<Item>, Fault> {
        if depth > MAX_DEPTH { self.fault("blocks are nested too deeply") } else { self.items(Some(depth)) }
    }

    fn value(&mut self, depth: usize) -> Result<Setting, Fault> {
        match self.next() {
            Some(Token::Text(text)) => Ok(Setting::Text(text)),
            Some(Token::Word(_)) => Ok(Setting::Other),
            Some(Token::Mark('{')) => Ok(Setting::Block(self.block(depth)?)),
            Some(Token::Mark('[')) => {
                let mut texts = Vec::new();
                loop {
                    match self.next() {
                        Some(Token::Text(text)) => texts.push(text),
                        Some(Token::Mark(',')) => {}
                        Some(Token::Mark(']')) => return Ok(Setting::Texts(texts)),
                        _ => return self.fault("a list has texts only"),
                    }
                }
            }
            _ => self.fault("a value is missing"),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Fault> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => line += 1,
            c if c.is_whitespace() => {}
            '#' => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.next_if_eq(&'*').is_some() => {
                let mut last = ' ';
                loop {
                    match rest.next() {
                        Some('/') if last == '*' => break,
                        Some(c) => {
                            line += usize::from(c == '\n');
                            last = c;
                        }
                        None => return Err((line, "a comment does not end".into())),
                    }
                }
            }
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next() {
                        Some('"') => break,
                        Some('\\') => match rest.next() {
                            Some('n') => text.push('\n'),
                            Some('t') => text.push('\t'),
                            Some(c @ ('"' | '\\')) => text.push(c),
                            _ => return Err((line, "a text has an unknown escape".into())),
                        },
                        Some('\n') | None => return Err((line, "a text does not end".into())),
                        Some(c) => text.push(c),
                    }
                }
                tokens.push((line, Token::Text(text)));
            }
            '=' | '{' | '}' | '[' | ']' | ',' => tokens.push((line, Token::Mark(c))),
            c if c.is_alphanumeric() || "_-.+".contains(c) => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || "_-.+".contains(*c)) {
                    word.push(c);
                }
                tokens.push((line, Token::Word(word)));
            }
            other => return Err((line, format!("{other:?} is not expected here"))),
        }
    }
    Ok(tokens)
}
