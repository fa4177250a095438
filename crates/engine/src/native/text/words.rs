//! Texts and names as OpenTofu writes them, and lines that fit.

/// A text in quotes. What cannot be seen is written in letters.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
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
            visible if !is_invisible(visible) => out.push(visible),
            other if u32::from(other) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(other))),
            other if u32::from(other) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(other))),
            other => out.push_str(&format!("\\U{:08x}", u32::from(other))),
        }
    }
    out.push('"');
    out
}

/// Control characters, spaces other than the usual one, marks of direction, and what stands for nothing.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || (character.is_whitespace() && character != ' ')
        || matches!(
            u32::from(character),
            0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f
                | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb | 0xfffe | 0xffff | 0xe0000..=0xe0fff | 0xf0000..
        )
}

/// A name as an argument has it, or in quotes where it could be none.
pub fn attribute_name(name: &str) -> String {
    let inside = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let plain = name.chars().all(inside) && name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    if plain { name.to_owned() } else { quoted(name) }
}

/// Paragraphs in lines of that many characters. Lines that begin with a space are left as they are.
pub fn wrapped(text: &str, width: usize) -> String {
    let wrap = |line: &str| if line.starts_with(' ') { line.to_owned() } else { wrapped_line(line, width) };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, width: usize) -> String {
    let (mut out, mut length) = (String::new(), 0);
    let mut rest = line;
    while !rest.is_empty() {
        let space = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let end = rest[space..].find([' ', '\t']).map_or(rest.len(), |at| space + at);
        let (between, word) = (&rest[..space], &rest[space..end]);
        let count = word.chars().count();
        if length > 0 && length + space + count > width {
            out.push('\n');
            length = 0;
        } else {
            out.push_str(between);
            length += space;
        }
        out.push_str(word);
        length += count;
        rest = &rest[end..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written() {
        assert_eq!(quoted("a\"b\\c\n\u{1}ä\u{200b}"), "\"a\\\"b\\\\c\\n\\x01ä\\u200b\"");
        assert_eq!(attribute_name("a-b_1"), "a-b_1");
        assert_eq!(attribute_name("1a"), "\"1a\"");
        assert_eq!(attribute_name(""), "\"\"");
    }

    #[test]
    fn paragraphs_fit() {
        assert_eq!(wrapped("aa bb cc\n  dd ee ff gg\n\nh", 5), "aa bb\ncc\n  dd ee ff gg\n\nh");
        assert_eq!(wrapped("aaaaaaaa b", 5), "aaaaaaaa\nb");
    }
}
