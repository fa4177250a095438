//! Bytes that go-cty wrote for random values must be read and written again without a change: the order of sets and
//! the form of numbers included. Each line has a type, the value in msgpack, and in JSON if it is wholly known.

use landform_cty::{Type, Value};

const WRITTEN: &str = include_str!("wire/go-cty.txt");

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

#[test]
fn what_go_cty_wrote_is_read_and_written_again() {
    for line in WRITTEN.lines() {
        let [ty, msgpack, json]: [&str; 3] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let ty: Type = serde_json::from_str(ty).unwrap();
        let bytes = from_hex(msgpack);
        let value = Value::from_msgpack(&bytes, &ty).unwrap();
        assert_eq!(value.to_msgpack(&ty).unwrap(), bytes, "{line}");
        if json == "-" {
            assert!(!value.is_wholly_known(), "{line}");
            continue;
        }
        let json: serde_json::Value = serde_json::from_slice(&from_hex(json)).unwrap();
        assert_eq!(value.to_json(&ty).unwrap(), json, "{line}");
        assert_eq!(Value::from_json(&json, &ty).unwrap().to_json(&ty).unwrap(), json, "{line}");
    }
}
