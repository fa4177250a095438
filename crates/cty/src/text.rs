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
