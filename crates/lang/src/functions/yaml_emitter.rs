//! YAML as libyaml writes it, byte by byte: blocks, text in double quotes, text of several lines as it stands.

use landform_cty::{Data, Value};

/// Lines are broken at the first space behind this column.
const BEST_WIDTH: usize = 80;
/// A longer key is written with a question mark.
const MAX_SIMPLE_KEY: usize = 128;

/// The value must be known.
pub(super) fn write(value: &Value) -> String {
    let mut emitter = Emitter { out: String::new(), column: 0, whitespace: true, indention: true };
    emitter.node(value, None, Context::Root);
    if emitter.column != 0 {
        emitter.line_break();
    }
    // Nothing else tells where a bare word ends.
    if matches!(value.data, Data::Number(_) | Data::Bool(_) | Data::Null) {
        emitter.out.push_str("...\n");
    }
    emitter.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Sequence,
    Mapping,
    SimpleKey,
}

struct Emitter {
    out: String,
    column: usize,
    /// Whether the last character was a space.
    whitespace: bool,
    /// Whether the line holds nothing but indentation.
    indention: bool,
}

impl Emitter {
    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, need_space: bool, is_indention: bool) {
        if need_space && !self.whitespace {
            self.put(' ');
        }
        for character in text.chars() {
            self.put(character);
        }
        self.whitespace = false;
        self.indention = self.indention && is_indention;
    }

    /// `indent` is that of what is around; nothing is around the root.
    fn node(&mut self, value: &Value, indent: Option<usize>, context: Context) {
        match &value.data {
            Data::Sequence(elements) if elements.is_empty() => self.indicator("[]", true, false),
            Data::Mapping(elements) if elements.is_empty() => self.indicator("{}", true, false),
            Data::Sequence(elements) => {
                // A list inside of a map stands no further in than its key.
                let inner = match indent {
                    None => 0,
                    Some(indent) if context == Context::Mapping && !self.indention => indent,
                    Some(indent) => indent + 2,
                };
                for element in elements.iter() {
                    self.indent(inner);
                    self.indicator("-", true, true);
                    self.node(element, Some(inner), Context::Sequence);
                }
            }
            Data::Mapping(elements) => {
                let inner = indent.map_or(0, |indent| indent + 2);
                for (key, element) in elements.iter() {
                    self.indent(inner);
                    if key.len() <= MAX_SIMPLE_KEY && !key.contains(is_break) {
                        self.text(key, inner, Context::SimpleKey);
                        self.indicator(":", false, false);
                    } else {
                        self.indicator("?", true, true);
                        self.text(key, inner + 2, Context::Mapping);
                        self.indent(inner);
                        self.indicator(":", true, true);
                    }
                    self.node(element, Some(inner), Context::Mapping);
                }
            }
            Data::String(text) => self.text(text, indent.map_or(2, |indent| indent + 2), context),
            Data::Number(number) => self.plain(&number.to_string()),
            Data::Bool(value) => self.plain(&value.to_string()),
            Data::Null | Data::Unknown(_) => self.plain("null"),
        }
    }

    fn plain(&mut self, text: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        for character in text.chars() {
            self.put(character);
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn text(&mut self, text: &str, indent: usize, context: Context) {
        if text.contains('\n') && context != Context::SimpleKey && fits_a_block(text) {
            self.literal(text, indent);
        } else {
            self.quoted(text, indent, context != Context::SimpleKey);
        }
    }

    fn quoted(&mut self, text: &str, indent: usize, may_break: bool) {
        self.indicator("\"", true, false);
        let mut after_space = false;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') {
                for escaped in escape(character).chars() {
                    self.put(escaped);
                }
                after_space = false;
            } else if character == ' ' {
                let inside = at > 0 && at < text.len() - 1;
                if may_break && !after_space && self.column > BEST_WIDTH && inside {
                    self.indent(indent);
                    if characters.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                after_space = true;
            } else {
                self.put(character);
                self.whitespace = false;
                after_space = false;
            }
            self.indention = false;
        }
        self.indicator("\"", false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false);
        if text.starts_with(' ') || text.starts_with(is_break) {
            self.indicator("2", false, false);
        }
        let mut ends = text.chars().rev();
        let last = ends.next().filter(|character| is_break(*character));
        match (last, ends.next()) {
            (None, _) => self.indicator("-", false, false),
            (Some(_), Some(before)) if !is_break(before) => {}
            _ => self.indicator("+", false, false),
        }
        self.line_break();
        self.indention = true;
        self.whitespace = true;
        let mut at_start = true;
        for character in text.chars() {
            if is_break(character) {
                match character {
                    '\n' => self.line_break(),
                    other => {
                        self.out.push(other);
                        self.column = 0;
                    }
                }
                self.indention = true;
                at_start = true;
            } else {
                if at_start {
                    self.indent(indent);
                }
                self.put(character);
                self.indention = false;
                at_start = false;
            }
        }
    }
}

/// Whether text can stand as it is. Spaces before the end of a line would not be seen.
fn fits_a_block(text: &str) -> bool {
    let mut previous_space = false;
    for character in text.chars() {
        if !is_printable(character) || (is_break(character) && previous_space) {
            return false;
        }
        previous_space = character == ' ';
    }
    !previous_space
}

fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && character != '\u{feff}'
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => "\\0",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\u{b}' => "\\v",
        '\u{c}' => "\\f",
        '\r' => "\\r",
        '\u{1b}' => "\\e",
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{85}' => "\\N",
        '\u{a0}' => "\\_",
        '\u{2028}' => "\\L",
        '\u{2029}' => "\\P",
        other => {
            return match other as u32 {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    short.to_owned()
}
