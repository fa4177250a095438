//! JSON from others. Two values under one key are a mistake of whoever wrote them, and which one counts would be a guess.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

/// Reads a document in which every object has each of its keys once.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice::<EachKeyOnce>(bytes)?;
    serde_json::from_slice(bytes)
}

const LONGEST_KEY_SHOWN: usize = 100;

/// Any value; nothing of it is kept.
struct EachKeyOnce;

impl<'de> Deserialize<'de> for EachKeyOnce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EachKeyOnce, D::Error> {
        deserializer.deserialize_any(Look)
    }
}

struct Look;

impl<'de> Visitor<'de> for Look {
    type Value = EachKeyOnce;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<EachKeyOnce, E> {
        Ok(EachKeyOnce)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<EachKeyOnce, E> {
        Ok(EachKeyOnce)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<EachKeyOnce, E> {
        Ok(EachKeyOnce)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<EachKeyOnce, E> {
        Ok(EachKeyOnce)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<EachKeyOnce, E> {
        Ok(EachKeyOnce)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<EachKeyOnce, E> {
        Ok(EachKeyOnce)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<EachKeyOnce, A::Error> {
        while items.next_element::<EachKeyOnce>()?.is_some() {}
        Ok(EachKeyOnce)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<EachKeyOnce, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if seen.contains(&key) {
                let shown: String = key.chars().take(LONGEST_KEY_SHOWN).collect();
                return Err(A::Error::custom(format_args!("the key `{shown}` stands there twice")));
            }
            seen.insert(key);
            entries.next_value::<EachKeyOnce>()?;
        }
        Ok(EachKeyOnce)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_key_stands_once_in_an_object_however_deep() {
        let read = |text: &str| read_json::<Value>(text.as_bytes());
        let fine =
            r#"{"a": {"a": [1, -1, 0.5, 1e400, "x", true, null, {"a": {}}]}, "b": {"a": 123456789012345678901}}"#;
        for text in [fine, "[]", "1", "\"x\"", "null"] {
            assert_eq!(read(text).is_ok(), serde_json::from_str::<Value>(text).is_ok(), "{text}");
        }
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"b": {"a": 1, "\u0061": 2}}]"#] {
            let why = read(text).unwrap_err().to_string();
            assert!(why.contains("the key `a` stands there twice") && why.contains("line 1"), "{why}");
        }
    }
}
