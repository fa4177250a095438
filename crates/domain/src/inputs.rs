//! A deployment's inputs: values for the template's variables.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Code, Problem};

/// What a sensitive value looks like when it is shown. Sent back, it is refused: nobody means it as a value.
pub const MASK: &str = "(sensitive)";

const MOST: usize = 1_000;
const LARGEST: usize = 1024 * 1024;

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub value: Value,
    #[serde(default)]
    pub sensitive: bool,
}

/// They hold secrets, so `Debug` shows names only; whoever stores them seals them.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inputs(BTreeMap<String, Input>);

impl Inputs {
    pub fn new(inputs: BTreeMap<String, Input>) -> Result<Inputs, Problem> {
        let invalid = |message| Err(Problem::new(Code::InputInvalid, message));
        if inputs.len() > MOST {
            return invalid(format!("{} inputs; at most {MOST} are taken", inputs.len()));
        }
        let mut size = 0;
        for (name, input) in &inputs {
            if !is_identifier(name) {
                let shown: String = name.chars().take(80).collect();
                return invalid(format!("{shown:?} is no name of a variable"));
            }
            if input.value == MASK {
                return Err(Problem::new(Code::InputMasked, format!("the input `{name}` is a masked value")));
            }
            size += name.len() + input.value.to_string().len();
        }
        if size > LARGEST {
            return invalid(format!("the inputs are {size} bytes; at most {LARGEST} are taken"));
        }
        Ok(Inputs(inputs))
    }

    /// The same, with these called sensitive as well.
    pub fn with_sensitive(mut self, is_sensitive: impl Fn(&str) -> bool) -> Inputs {
        for (name, input) in &mut self.0 {
            input.sensitive |= is_sensitive(name);
        }
        self
    }

    /// The inputs that a write means, given those before it: an omitted sensitive input keeps its value, if there still
    /// is such a variable, and what was sensitive stays so.
    pub fn over(mut self, previous: &Inputs, has_variable: impl Fn(&str) -> bool) -> Inputs {
        let kept = previous.0.iter().filter(|(name, input)| input.sensitive && has_variable(name));
        for (name, before) in kept {
            self.0.entry(name.clone()).and_modify(|input| input.sensitive = true).or_insert_with(|| before.clone());
        }
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Input)> + Clone {
        self.0.iter()
    }

    /// As they may be shown.
    pub fn masked(&self) -> BTreeMap<String, Value> {
        let shown = |input: &Input| if input.sensitive { MASK.into() } else { input.value.clone() };
        self.0.iter().map(|(name, input)| (name.clone(), shown(input))).collect()
    }

    /// The same bytes for the same inputs, whatever order they were written in.
    pub fn canonical(&self) -> Vec<u8> {
        let mut text = String::new();
        for (name, input) in &self.0 {
            write_canonical(&Value::from(name.as_str()), &mut text);
            text.push(if input.sensitive { '!' } else { ':' });
            write_canonical(&input.value, &mut text);
            text.push('\n');
        }
        text.into_bytes()
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in entries {
                write_canonical(&Value::from(name.as_str()), text);
                text.push(':');
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inputs(list: &[(&str, Value, bool)]) -> Inputs {
        let entry = |(name, value, sensitive): &(&str, Value, bool)| {
            (name.to_string(), Input { value: value.clone(), sensitive: *sensitive })
        };
        Inputs::new(list.iter().map(entry).collect()).unwrap()
    }

    #[test]
    fn an_omitted_sensitive_input_keeps_its_value() {
        let before = inputs(&[("key", json!("s3cret"), true), ("size", json!(1), false)]);
        let after = inputs(&[("size", json!(2), false)]).over(&before, |_| true);
        assert_eq!(after, inputs(&[("key", json!("s3cret"), true), ("size", json!(2), false)]));
        let gone = inputs(&[]).over(&before, |name| name != "key");
        assert_eq!(gone, inputs(&[]), "there is no such variable any more");
        let changed = inputs(&[("key", json!("new"), false)]).over(&before, |_| true);
        assert_eq!(changed, inputs(&[("key", json!("new"), true)]), "and it stays sensitive");
        assert_eq!(after.masked()["key"], MASK);
        assert!(!format!("{after:?}").contains("s3cret"));
    }

    #[test]
    fn refuses_masks_and_nonsense() {
        let one = |name: &str, value| {
            Inputs::new(BTreeMap::from([(name.to_owned(), Input { value, sensitive: false })])).unwrap_err().code
        };
        assert_eq!(one("a", json!(MASK)), Code::InputMasked);
        assert_eq!(one("a b", json!(1)), Code::InputInvalid);
        assert_eq!(one("a", json!("x".repeat(LARGEST))), Code::InputInvalid);
    }

    #[test]
    fn canonical_bytes_tell_apart_what_differs() {
        let a = inputs(&[("x", json!({"a": 1, "b": [1, 2]}), false)]);
        let b = inputs(&[("x", serde_json::from_str(r#"{"b":[1,2],"a":1}"#).unwrap(), false)]);
        assert_eq!(a.canonical(), b.canonical());
        let different = [json!({"a": 1, "b": [12]}), json!("{"), json!(null), json!(1.0), json!("1")];
        for value in different {
            assert_ne!(a.canonical(), inputs(&[("x", value, false)]).canonical());
        }
    }
}
