use std::fmt::Write;
use std::iter::once;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, compose};
use unicode_segmentation::UnicodeSegmentation;

/// The part of a prefix that stays as it is whatever follows: the last character as people see it might still take
/// up a combining mark, so it is left out.
///
/// Providers are told of it, so it is go-cty's to the byte. That looks at the last character alone if that may still be
/// composed with what follows; otherwise it goes from character to character and gets no further than the end of the first line.
pub fn safe_known_prefix(prefix: &str) -> &str {
    let Some((start, last)) = prefix.grapheme_indices(true).next_back() else { return prefix };
    if last.chars().next_back().is_some_and(may_be_composed) {
        return &prefix[..start];
    }
    let kept = if last.len() == 1 && is_delimiter(last.as_bytes()[0]) { prefix } else { &prefix[..start] };
    let line_end = prefix.grapheme_indices(true).find(|(_, grapheme)| matches!(*grapheme, "\n" | "\r"));
    &kept[..line_end.map_or(kept.len(), |(at, _)| at.min(kept.len()))]
}

/// Whether what follows can make another character of it in normal form C, or it is such a composed one.
fn may_be_composed(character: char) -> bool {
    match character {
        'q' | 'Q' => false,
        'A'..='Z' | 'a'..='z' | '<' | '=' | '>' => true,
        '\0'..='\x7f' => false,
        _ => {
            canonical_combining_class(character) != 0
                || once(character).nfd().ne(once(character))
                || COMPOSING.iter().any(|mark| compose(character, *mark).is_some())
        }
    }
}

/// All that is ever the second half of a composed character, but for the letters of Korean syllables.
#[rustfmt::skip]
const COMPOSING: [char; 63] = [
    '\u{300}', '\u{301}', '\u{302}', '\u{303}', '\u{304}', '\u{306}', '\u{307}', '\u{308}', '\u{309}', '\u{30a}', '\u{30b}',
    '\u{30c}', '\u{30f}', '\u{311}', '\u{313}', '\u{314}', '\u{31b}', '\u{323}', '\u{324}', '\u{325}', '\u{326}', '\u{327}',
    '\u{328}', '\u{32d}', '\u{32e}', '\u{330}', '\u{331}', '\u{338}', '\u{342}', '\u{345}', '\u{653}', '\u{654}', '\u{655}',
    '\u{93c}', '\u{9be}', '\u{9d7}', '\u{b3e}', '\u{b56}', '\u{b57}', '\u{bbe}', '\u{bd7}', '\u{c56}', '\u{cc2}', '\u{cd5}',
    '\u{cd6}', '\u{d3e}', '\u{d57}', '\u{dca}', '\u{dcf}', '\u{ddf}', '\u{102e}', '\u{1b35}', '\u{3099}', '\u{309a}',
    '\u{110ba}', '\u{11127}', '\u{1133e}', '\u{11357}', '\u{114b0}', '\u{114ba}', '\u{114bd}', '\u{115af}', '\u{11930}',
];

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each as go-cty 1.18 has it.
    #[test]
    fn a_known_prefix_is_go_ctys() {
        for (prefix, safe) in [
            ("", ""),
            ("ab c", "ab "),
            ("line\nother ", "line"),
            ("line\nother", "line\nothe"),
            ("line\nother q", "line"),
            ("line\nother é", "line\nother "),
            ("line\n가", "line\n"),
            ("line\nа", "line\n"),
            ("line\n5", "line"),
            ("line\n", "line"),
            ("line\r\nother ", "line\r\nother "),
            ("a\r\n\n ", "a\r\n"),
            ("a\r ", "a"),
            ("\n", ""),
            ("\r\n", ""),
            ("a\n🇩🇪 ", "a"),
            ("🇩🇪 a\n ", "🇩🇪 a"),
            ("{\n \"a\": ", "{"),
        ] {
            assert_eq!(safe_known_prefix(prefix), safe, "{prefix:?}");
        }
    }
}
