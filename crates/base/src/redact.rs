//! Removing known secret values from text that others wrote: a provider's message, a child's output.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::secret::SecretString;

const MASK: &str = "(redacted)";

/// Shorter values occur in ordinary text by chance; masking them would make messages unreadable and hide nothing.
const SHORTEST: usize = 4;
const SHORTEST_IN_BASE64: usize = 8;

#[derive(Debug, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another one disappears whole.
    needles: Vec<SecretString>,
}

/// What a value looks like within base64 text. Its bits may begin at one of three places in a group of characters;
/// characters that it shares with its neighbours are left out.
fn in_base64(value: &[u8]) -> impl Iterator<Item = String> {
    let alphabets = [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD];
    alphabets.into_iter().flat_map(move |alphabet| {
        (0..3).filter_map(move |before| {
            let encoded = alphabet.encode([&[0; 2][..before.min(2)], value].concat());
            let shared_before = (before * 8).div_ceil(6);
            let whole = (before + value.len()) * 8 / 6;
            encoded.get(shared_before..whole).filter(|text| text.len() >= SHORTEST_IN_BASE64).map(str::to_owned)
        })
    })
}

impl Redactor {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Redactor {
        Redactor::default().with(secrets)
    }

    /// The same, which hides these too.
    pub fn with<'a>(self, secrets: impl IntoIterator<Item = &'a SecretString>) -> Redactor {
        let mut plain: Vec<String> = self.needles.iter().map(|needle| needle.expose().clone()).collect();
        for secret in secrets {
            let value = secret.expose();
            if value.len() < SHORTEST {
                continue;
            }
            plain.push(value.clone());
            // The same value as it looks inside JSON text, which is how most APIs echo it.
            if let Ok(quoted) = serde_json::to_string(value) {
                let inner = &quoted[1..quoted.len() - 1];
                if inner != value {
                    plain.push(inner.to_owned());
                }
            }
            plain.extend(in_base64(value.as_bytes()));
            // A key file is echoed line by line.
            plain.extend(value.lines().filter(|line| line.len() >= 16 && *line != value).map(str::to_owned));
        }
        plain.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        plain.dedup();
        Redactor { needles: plain.into_iter().map(SecretString::from).collect() }
    }

    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for needle in &self.needles {
            if text.contains(needle.expose().as_str()) {
                text = text.replace(needle.expose().as_str(), MASK);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(secrets: &[&str], text: &str) -> String {
        let secrets: Vec<SecretString> = secrets.iter().map(|s| SecretString::from(*s)).collect();
        Redactor::new(&secrets).redact(text)
    }

    #[test]
    fn masks_every_occurrence() {
        assert_eq!(redact(&["hunter2"], "hunter2 and hunter2!"), "(redacted) and (redacted)!");
    }

    #[test]
    fn a_secret_within_a_secret_leaves_no_rest() {
        assert_eq!(redact(&["pass", "password1"], "password1 pass"), "(redacted) (redacted)");
    }

    #[test]
    fn masks_the_json_form_and_the_lines_of_a_key() {
        assert_eq!(redact(&["a\"bc\n"], r#"{"p":"a\"bc\n"}"#), r#"{"p":"(redacted)"}"#);
        assert_eq!(redact(&["-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n"], "bad MIIEpAIBAAKCAQEA"), "bad (redacted)");
    }

    #[test]
    fn masks_a_secret_within_base64_wherever_it_begins() {
        use base64::engine::general_purpose::STANDARD;
        for before in ["", "a", "ab", "abc", "user:"] {
            for behind in ["", "z", "zz"] {
                let text = STANDARD.encode(format!("{before}correct-horse-battery{behind}"));
                let masked = redact(&["correct-horse-battery"], &text);
                assert!(masked.contains("(redacted)") && masked.len() < 24, "{before} {behind}: {masked}");
            }
        }
    }

    #[test]
    fn leaves_short_values_alone() {
        assert_eq!(redact(&["a", ""], "a banana"), "a banana");
    }
}
