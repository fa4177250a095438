use std::fmt::Write;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// The part of a prefix that stays as it is whatever follows: the last character as people see it might still take
/// up a combining mark, so it is left out.
pub fn safe_known_prefix(prefix: &str) -> &str {
    match prefix.grapheme_indices(true).next_back() {
        Some((_, last)) if last.len() == 1 && is_delimiter(last.as_bytes()[0]) => prefix,
        Some((start, _)) => &prefix[..start],
        None => prefix,
    }
}

/// Punctuation that no later character can change: go-cty's list, since the prefix is sent to providers.
fn is_delimiter(byte: u8) -> bool {
    b"-_:;/\\,.(){}[]|?!~ \t@#$%^&*+\"'".contains(&byte)
}

/// Unicode's normal form C: two spellings of one text become one.
pub fn normalize(text: &str) -> String {
    if text.is_ascii() { text.to_owned() } else { text.nfc().collect() }
}

/// Go's `%q`: the order of sets and many messages depend on it.
pub fn quote_as_go(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            control if (control as u32) < 0x20 || control == '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", control as u32);
            }
            other if other.is_ascii() || is_printable(other) => out.push(other),
            other if (other as u32) < 0x10000 => {
                let _ = write!(out, "\\u{:04x}", other as u32);
            }
            other => {
                let _ = write!(out, "\\U{:08x}", other as u32);
            }
        }
    }
    out.push('"');
    out
}

/// Rust's own escaping knows which characters can be printed. It also escapes combining ones, unless they follow another.
fn is_printable(character: char) -> bool {
    let mut text = String::from("a");
    text.push(character);
    text.escape_debug().count() == 2
}
