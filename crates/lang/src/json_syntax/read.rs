//! JSON with its places: which line a value stands on is as interesting as in HCL's own syntax.

/// Deeper than this no configuration is, and a stack is not endless.
const MAX_DEPTH: usize = 100;

/// Not wrong: only deeper than a reader that calls itself may go.
pub const TOO_DEEP: &str = "Nested too deeply";

/// A value and where it begins.
#[derive(Debug)]
pub struct Json {
    pub node: Node,
    pub at: usize,
}

#[derive(Debug)]
pub enum Node {
    Null,
    Bool(bool),
    /// As it is written.
    Number(String),
    String(String),
    Array(Vec<Json>),
    /// In the order of the text; a name may come more than once.
    Object(Vec<Member>),
}

#[derive(Debug)]
pub struct Member {
    pub name: String,
    pub at: usize,
    pub value: Json,
}

/// What is wrong with the text, and where.
#[derive(Debug)]
pub struct Fault {
    pub what: &'static str,
    pub at: usize,
}

pub fn read(text: &str) -> Result<Json, Fault> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at < text.len() { Err(reader.fault("Extra data after the value")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn fault(&self, what: &'static str) -> Fault {
        Fault { what, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json, Fault> {
        self.space();
        if depth > MAX_DEPTH {
            return Err(self.fault(TOO_DEEP));
        }
        let at = self.at;
        let node = match self.peek() {
            Some(b'{') => Node::Object(self.object(depth)?),
            Some(b'[') => Node::Array(self.array(depth)?),
            Some(b'"') => Node::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Node::Number(self.number()?),
            Some(b't') => self.word("true", Node::Bool(true))?,
            Some(b'f') => self.word("false", Node::Bool(false))?,
            Some(b'n') => self.word("null", Node::Null)?,
            Some(_) => return Err(self.fault("A value must begin here")),
            None => return Err(self.fault("The text ends where a value must begin")),
        };
        Ok(Json { node, at })
    }

    fn word(&mut self, word: &str, node: Node) -> Result<Node, Fault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.fault("This is neither true nor false nor null"));
        }
        self.at += word.len();
        Ok(node)
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>, Fault> {
        self.at += 1;
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            self.space();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fault("A property's name must be a string"));
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.fault("A colon must follow a property's name"));
            }
            members.push(Member { name, at, value: self.value(depth + 1)? });
            if self.take(b'}') {
                return Ok(members);
            }
            if !self.take(b',') {
                return Err(self.fault("A comma or a closing brace must follow a property"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Json>, Fault> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(elements);
            }
            if !self.take(b',') {
                return Err(self.fault("A comma or a closing bracket must follow an element"));
            }
        }
    }

    /// The piece between two quotes is left to serde_json: escapes and surrogates are its business.
    fn string(&mut self) -> Result<String, Fault> {
        let begin = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Fault { what: "The string does not end", at: begin }),
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let piece = self.text.get(begin..self.at);
        let read = piece.and_then(|piece| serde_json::from_str::<String>(piece).ok());
        read.ok_or(Fault { what: "The string is not valid", at: begin })
    }

    fn number(&mut self) -> Result<String, Fault> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let piece = &self.text[begin..self.at];
        // Whether it is a number, serde_json says; which one it is, only its digits say exactly.
        match serde_json::from_str::<serde_json::Number>(piece) {
            Ok(_) => Ok(piece.to_owned()),
            Err(_) => Err(Fault { what: "The number is not valid", at: begin }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_places() {
        let json = read("{\n  \"a\": [1, -2.5e3, \"x\\u00e9\"],\n  \"a\": null }").unwrap();
        let Node::Object(members) = json.node else { panic!("no object") };
        assert_eq!(
            members.iter().map(|member| (member.name.as_str(), member.at)).collect::<Vec<_>>(),
            [("a", 4), ("a", 35)]
        );
        let Node::Array(elements) = &members[0].value.node else { panic!("no array") };
        assert!(matches!(&elements[1].node, Node::Number(text) if text == "-2.5e3"));
        assert!(matches!(&elements[2].node, Node::String(text) if text == "xé"));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in
            ["", "{", "{\"a\"}", "{\"a\":1,}", "[1 2]", "\"a", "\"\\q\"", "01x", "nul", "{} {}", "{a: 1}", "\"\\"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&"[".repeat(100_000)).is_err());
    }
}
