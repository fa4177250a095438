//! Which operations a GraphQL request asks for: the fields of its root. Their names are the vendor's; an operation's name
//! and aliases are the client's, and limits do not follow them.

/// Deeper than any client nests fragments.
const MOST_FRAGMENTS: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The root fields; a field in `inside` stands for the fields within it.
    pub(super) fields: Vec<String>,
    pub(super) is_mutation: bool,
}

/// The operation with this name, or the only one. `None`: this cannot be read.
pub(super) fn read(query: &str, name: Option<&str>, inside: &[String]) -> Option<Request> {
    let tokens = tokens(query)?;
    let document = Document::read(&tokens)?;
    let operation = match name.filter(|name| !name.is_empty()) {
        Some(name) => document.operations.iter().find(|operation| operation.name == name)?,
        None => document.operations.first().filter(|_| document.operations.len() == 1)?,
    };
    let mut found = Vec::new();
    document.fields(operation.selection, 0, &mut |field, within| match within
        .filter(|_| inside.iter().any(|name| name == field))
    {
        Some(within) => document.fields(within, 0, &mut |field, _| {
            found.push(field.to_owned());
            Some(())
        }),
        None => {
            found.push(field.to_owned());
            Some(())
        }
    })?;
    found.sort_unstable();
    (!found.is_empty()).then_some(Request { fields: found, is_mutation: operation.is_mutation })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    Sign(char),
    Spread,
    Text,
}

fn tokens(query: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => {
                tokens.push(Token::Text);
                text(rest)?
            }
            '.' => {
                tokens.push(Token::Spread);
                rest.starts_with("...").then_some(3)?
            }
            first if first.is_ascii_alphanumeric() || first == '_' => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                tokens.push(Token::Name(&rest[..end]));
                end
            }
            first if first.is_whitespace() || first == ',' || first == '\u{feff}' => first.len_utf8(),
            first => {
                tokens.push(Token::Sign(first));
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Some(tokens)
}

/// The length of the string at the beginning.
fn text(rest: &str) -> Option<usize> {
    if let Some(block) = rest.strip_prefix("\"\"\"") {
        let mut from = 0;
        loop {
            let end = from + block[from..].find("\"\"\"")?;
            if !block[..end].ends_with('\\') {
                return Some(end + 6);
            }
            from = end + 3;
        }
    }
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

type Selection<'a> = &'a [Token<'a>];

struct Operation<'a> {
    name: &'a str,
    is_mutation: bool,
    selection: Selection<'a>,
}

#[derive(Default)]
struct Document<'a> {
    operations: Vec<Operation<'a>>,
    fragments: Vec<(&'a str, Selection<'a>)>,
}

impl<'a> Document<'a> {
    fn read(tokens: &'a [Token<'a>]) -> Option<Document<'a>> {
        let mut document = Document::default();
        let mut at = 0;
        while at < tokens.len() {
            let open = at + braces_at(&tokens[at..])?;
            let end = matching(tokens, open)?;
            let within = &tokens[open + 1..end];
            let operation = |kind: &str, name| Operation { name, is_mutation: kind == "mutation", selection: within };
            match tokens[at..open] {
                [] => document.operations.push(operation("query", "")),
                [Token::Name("fragment"), Token::Name(name), ..] => document.fragments.push((name, within)),
                [Token::Name(kind @ ("query" | "mutation" | "subscription")), ref rest @ ..] => {
                    let name = if let [Token::Name(name), ..] = rest { *name } else { "" };
                    document.operations.push(operation(kind, name));
                }
                _ => return None,
            }
            at = end + 1;
        }
        Some(document)
    }

    /// Calls back for each field of a selection, with the selection within it.
    fn fields(
        &self,
        selection: Selection<'a>,
        depth: usize,
        each: &mut dyn FnMut(&'a str, Option<Selection<'a>>) -> Option<()>,
    ) -> Option<()> {
        if depth > MOST_FRAGMENTS {
            return None;
        }
        let mut at = 0;
        while at < selection.len() {
            let (field, fragment) = match selection[at..] {
                [Token::Spread, Token::Name(name), ..] if name != "on" => {
                    at += 2;
                    (None, Some(name))
                }
                [Token::Spread, ..] => {
                    at += 1;
                    (None, None)
                }
                [Token::Name(_), Token::Sign(':'), Token::Name(name), ..] => {
                    at += 3;
                    (Some(name), None)
                }
                [Token::Name(name), ..] => {
                    at += 1;
                    (Some(name), None)
                }
                _ => return None,
            };
            // `on TYPE`, arguments and directives; then perhaps a selection.
            let mut within = None;
            while at < selection.len() {
                match selection[at] {
                    Token::Sign('(') => at = matching(selection, at)? + 1,
                    Token::Sign('@') => at += 2,
                    Token::Name("on") if field.is_none() => at += 2,
                    Token::Sign('{') => {
                        let end = matching(selection, at)?;
                        within = Some(&selection[at + 1..end]);
                        at = end + 1;
                        break;
                    }
                    _ => break,
                }
            }
            match (field, fragment, within) {
                (Some(field), _, within) => each(field, within)?,
                (None, Some(name), _) => {
                    let (_, within) = self.fragments.iter().find(|(fragment, _)| *fragment == name)?;
                    self.fields(within, depth + 1, each)?;
                }
                (None, None, within) => self.fields(within?, depth + 1, each)?,
            }
        }
        Some(())
    }
}

/// The first brace that is in no parentheses: defaults of variables may be objects.
fn braces_at(tokens: &[Token<'_>]) -> Option<usize> {
    let mut at = 0;
    loop {
        match tokens.get(at)? {
            Token::Sign('{') => return Some(at),
            Token::Sign('(') => at = matching(tokens, at)? + 1,
            _ => at += 1,
        }
    }
}

/// Where what opens here is closed.
fn matching(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Sign('(' | '{' | '[') => depth += 1,
            Token::Sign(')' | '}' | ']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str, name: Option<&str>) -> Option<Vec<String>> {
        read(query, name, &["site".to_owned()]).map(|request| request.fields)
    }

    #[test]
    fn an_operation_is_known_by_its_fields_whatever_the_client_calls_it() {
        let cases: [(&str, Option<&str>, &[&str]); 8] = [
            ("{ entityLookup(accountID: \"1\", type: site) { total } }", None, &["entityLookup"]),
            (
                "query mine($x: In = {a: {b: 1}}) @d { other: entityLookup(a: $x) @include(if: true) { total } }",
                Some("mine"),
                &["entityLookup"],
            ),
            (
                "mutation m { site(accountId: 1) { made: addSite(input: {a: [1]}) { id } removeSite { id } } }",
                None,
                &["addSite", "removeSite"],
            ),
            ("query a { one } query b { two three }", Some("b"), &["three", "two"]),
            (
                "{ ...F ... on Query { two } } fragment F on Query { one site { below } }",
                None,
                &["below", "one", "two"],
            ),
            ("{ a(text: \"} # \\\" {\") # } {\n b(text: \"\"\"}\\\"\"\" {\"\"\") c }", None, &["a", "b", "c"]),
            ("query { site }", None, &["site"]),
            ("{ twice: look { a } thrice: look { b } }", None, &["look", "look"]),
        ];
        for (query, name, wanted) in cases {
            assert_eq!(
                of(query, name).as_deref(),
                Some(&wanted.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()[..]),
                "{query}"
            );
        }
    }

    #[test]
    fn what_changes_something_says_so() {
        let is_mutation = |query, name| read(query, name, &[]).unwrap().is_mutation;
        assert!(is_mutation("mutation { a }", None) && is_mutation("mutation m($x: Int) @d { a }", None));
        assert!(!is_mutation("{ mutation }", None) && !is_mutation("query mutation { a }", Some("mutation")));
        let both = "query look { a } mutation make { b }";
        assert!(is_mutation(both, Some("make")) && !is_mutation(both, Some("look")));
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        let endless = "{ ...F } fragment F on Query { ...F }";
        for query in
            ["", "{", "{ a(", "query a { one } query b { two }", "{ ...Missing }", "\"", "type X { a: Int }", endless]
        {
            assert_eq!(of(query, None), None, "{query}");
        }
        assert_eq!(of("query a { one }", Some("b")), None);
    }
}
