//! Patterns of file names: `*`, `**`, `?`, `[a-z]` and `{a,b}`.

pub(super) struct Glob {
    /// One for each way through the braces; each a list of parts between slashes.
    ways: Vec<Vec<Part>>,
}

enum Part {
    /// `**` alone: any number of folders.
    Folders,
    Name(Vec<Token>),
}

enum Token {
    Literal(char),
    Any,
    Star,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// More ways through braces are not followed.
const MAX_WAYS: usize = 256;

impl Glob {
    /// `None`: not understood here.
    pub fn parse(pattern: &str) -> Option<Glob> {
        let ways = expand(pattern)?;
        let ways = ways
            .iter()
            .map(|way| way.split('/').map(|part| if part == "**" { Some(Part::Folders) } else { name(part) }).collect())
            .collect::<Option<_>>()?;
        Some(Glob { ways })
    }

    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        self.ways.iter().any(|way| matches_way(way, &names))
    }

    /// Whether something inside of this folder may match.
    pub fn could_match_below(&self, folder: &str) -> bool {
        let names: Vec<&str> = folder.split('/').collect();
        self.ways.iter().any(|way| {
            for (index, part) in way.iter().enumerate() {
                match (part, names.get(index)) {
                    (Part::Folders, _) => return true,
                    (_, None) => return true,
                    (Part::Name(tokens), Some(found)) if !matches_name(tokens, found) => return false,
                    _ => {}
                }
            }
            false
        })
    }
}

/// The pattern for every choice in its braces.
fn expand(pattern: &str) -> Option<Vec<String>> {
    let Some(open) = pattern.find('{') else {
        return (!pattern.contains('}')).then(|| vec![pattern.to_owned()]);
    };
    let mut depth = 0;
    let mut choices = vec![String::new()];
    let mut end = None;
    for (at, character) in pattern[open..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (character, depth) {
            ('{', 1) => continue,
            ('}', 0) => {
                end = Some(open + at + 1);
                break;
            }
            (',', 1) => choices.push(String::new()),
            _ => choices.last_mut()?.push(character),
        }
    }
    let rest = &pattern[end?..];
    let mut ways = Vec::new();
    for choice in choices {
        ways.extend(expand(&format!("{}{choice}{rest}", &pattern[..open]))?);
        if ways.len() > MAX_WAYS {
            return None;
        }
    }
    Some(ways)
}

fn name(part: &str) -> Option<Part> {
    let mut tokens = Vec::new();
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => Token::Literal(characters.next()?),
            '[' => {
                let negated = characters.next_if(|character| matches!(character, '^' | '!')).is_some();
                let mut ranges = Vec::new();
                loop {
                    let low = match characters.next()? {
                        ']' if !ranges.is_empty() => break,
                        '\\' => characters.next()?,
                        ']' | '-' => return None,
                        low => low,
                    };
                    let mut high = low;
                    if characters.next_if_eq(&'-').is_some() {
                        high = match characters.next()? {
                            '\\' => characters.next()?,
                            ']' => return None,
                            high => high,
                        };
                    }
                    ranges.push((low, high));
                }
                Token::Class { negated, ranges }
            }
            other => Token::Literal(other),
        });
    }
    Some(Part::Name(tokens))
}

fn matches_way(way: &[Part], names: &[&str]) -> bool {
    match way.split_first() {
        None => names.is_empty(),
        Some((Part::Folders, rest)) => (0..=names.len()).any(|skipped| matches_way(rest, &names[skipped..])),
        Some((Part::Name(tokens), rest)) => match names.split_first() {
            Some((name, others)) => matches_name(tokens, name) && matches_way(rest, others),
            None => false,
        },
    }
}

/// Goes back to the last star only: that is enough, and not more than the product of the two lengths.
fn matches_name(tokens: &[Token], name: &str) -> bool {
    let characters: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < characters.len() {
        let fits = match tokens.get(token) {
            Some(Token::Star) => {
                star = Some((token, at));
                token += 1;
                continue;
            }
            Some(Token::Any) => true,
            Some(Token::Literal(wanted)) => *wanted == characters[at],
            Some(Token::Class { negated, ranges }) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&characters[at])) != *negated
            }
            None => false,
        };
        if fits {
            token += 1;
            at += 1;
            continue;
        }
        let Some((star_token, star_at)) = star else { return false };
        star = Some((star_token, star_at + 1));
        token = star_token + 1;
        at = star_at + 1;
    }
    tokens[token..].iter().all(|token| matches!(token, Token::Star))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        let matches = |pattern: &str, path: &str| Glob::parse(pattern).unwrap().matches(path);
        assert!(matches("*.txt", "a.txt"));
        assert!(!matches("*.txt", "b/a.txt"));
        assert!(matches("**", "a/b/c"));
        assert!(matches("**/*.txt", "a.txt"));
        assert!(matches("a/**/c", "a/c"));
        assert!(matches("{a,b/{c,d}}.x", "b/d.x"));
        assert!(matches("a?[b-d]*", "axcz"));
        assert!(!matches("[!a]", "a"));
        assert!(Glob::parse("[a").is_none());
        assert!(Glob::parse("{a").is_none());
    }
}
