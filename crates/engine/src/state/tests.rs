use serde_json::json;

use super::*;
use crate::{Key, Settlement};

const FIXTURE: &[u8] = include_bytes!("fixtures/opentofu-1.12.6.tfstate");

fn entry(name: &str, key: Option<u64>, id: &str) -> serde_json::Value {
    let mut instance = json!({"schema_version": 0, "attributes": {"id": id}, "sensitive_attributes": []});
    if let Some(key) = key {
        instance["index_key"] = json!(key);
    }
    json!({
        "mode": "managed", "type": "terraform_data", "name": name,
        "provider": "provider[\"terraform.io/builtin/terraform\"]",
        "instances": [instance],
    })
}

fn settled(address: &str, settlement: Settlement) -> Settled {
    Settled { address: address.to_owned(), deposed: None, settlement }
}

fn addresses(state: &[u8]) -> Vec<String> {
    objects(state).unwrap().iter().map(|object| object.address.to_string()).collect()
}

#[test]
fn a_state_of_opentofu_is_written_back_byte_for_byte() {
    let state = State::read(FIXTURE).unwrap();
    assert_eq!(String::from_utf8(state.write()).unwrap(), std::str::from_utf8(FIXTURE).unwrap());
}

#[test]
fn objects_are_found_with_their_condition() {
    let tainted: Vec<_> = objects(FIXTURE).unwrap().into_iter().filter(|object| object.tainted).collect();
    assert_eq!(tainted.len(), 1);
    assert_eq!(tainted[0].address, Address::managed("terraform_data", "many", Some(Key::Index(10))));
    assert!(has_object(FIXTURE, "terraform_data.many[3]", None).unwrap());
    assert!(!has_object(FIXTURE, "terraform_data.many[11]", None).unwrap());
    assert!(!has_object(FIXTURE, "terraform_data.many[3]", Some("12345678")).unwrap());
}

#[test]
fn what_is_no_state_is_refused_by_name() {
    let cut = &FIXTURE[..FIXTURE.len() - 20];
    assert!(matches!(State::read(cut), Err(StateError::Malformed(_))), "truncated");
    assert!(matches!(State::read(b""), Err(StateError::Malformed(_))), "empty");
    assert!(matches!(State::read(b"{}"), Err(StateError::Malformed(_))), "no version");
    assert_eq!(State::read(br#"{"version":3,"serial":1}"#).unwrap_err(), StateError::Format(3));
    let sealed = br#"{"serial":1,"lineage":"x","meta":{},"encrypted_data":"eA==","encryption_version":"v0"}"#;
    assert_eq!(State::read(sealed).unwrap_err(), StateError::Encrypted);
    let twice = String::from_utf8_lossy(FIXTURE).replace("\"index_key\": 4", "\"index_key\": 3");
    assert!(State::read(twice.as_bytes()).unwrap_err().to_string().contains("many[3] appears twice"));
    let odd = String::from_utf8_lossy(FIXTURE).replace("\"tainted\"", "\"rotten\"");
    assert!(State::read(odd.as_bytes()).unwrap_err().to_string().contains("many[10]"));
}

#[test]
fn the_serial_rises_only_with_a_change() {
    let base = State::read(FIXTURE).unwrap();
    let mut same = base.clone();
    same.follow(Some(&base));
    assert_eq!(same.serial, base.serial);
    let mut other = base.clone();
    other.remove(&Address::managed("coder_agent", "main", None), None);
    other.follow(Some(&base));
    assert_eq!((other.serial, &other.lineage), (base.serial + 1, &base.lineage));
}

#[test]
fn settlements_are_folded_over_the_base() {
    let replayed = replay(
        Some(FIXTURE),
        &[
            settled("coder_agent.main", Settlement::Gone),
            settled("terraform_data.many[10]", Settlement::Untouched),
            settled("terraform_data.many[11]", Settlement::Object(entry("many", Some(11), "new"))),
            settled("terraform_data.first", Settlement::Gone),
            settled("terraform_data.first", Settlement::Object(entry("first", None, "again"))),
        ],
    )
    .unwrap();
    let (before, after) = (State::read(FIXTURE).unwrap(), State::read(&replayed).unwrap());
    assert_eq!((after.serial, after.lineage), (before.serial + 1, before.lineage));
    assert_eq!(after.outputs.len(), before.outputs.len());
    let addresses = addresses(&replayed);
    assert_eq!(addresses.first().unwrap(), "terraform_data.first");
    assert_eq!(addresses.last().unwrap(), "terraform_data.many[11]", "10 and 11 are sorted as numbers");
    assert_eq!(addresses.len(), 13);
    assert!(String::from_utf8(replayed).unwrap().contains("\"id\": \"again\""));
}

#[test]
fn replay_without_a_base_makes_a_state_and_is_repeatable() {
    let settlements = [settled("terraform_data.a", Settlement::Object(entry("a", None, "1")))];
    let first = replay(None, &settlements).unwrap();
    assert_eq!(first, replay(None, &settlements).unwrap());
    assert_eq!(addresses(&first), ["terraform_data.a"]);
    assert_eq!(State::read(&first).unwrap().serial, 1);
    assert_eq!(replay(Some(&first), &[]).unwrap(), first, "nothing settled, nothing changed");
}

#[test]
fn replay_refuses_what_the_journal_cannot_have_said() {
    assert!(replay(None, &[settled("nonsense", Settlement::Gone)]).is_err());
    let broken = settled("terraform_data.a", Settlement::Object(json!({"mode": 3})));
    assert!(replay(None, &[broken]).is_err());
}

#[test]
fn an_object_makes_room_for_the_one_that_took_its_place() {
    let state = br#"{"version":4,"terraform_version":"1.12.6","serial":3,"lineage":"l","outputs":{},"resources":[
        {"mode":"managed","type":"thing","name":"a","provider":"provider[\"registry.opentofu.org/x/y\"]","instances":[
            {"index_key":0,"schema_version":0,"attributes":{"id":"old"}},
            {"index_key":1,"schema_version":0,"attributes":{"id":"other"}}]}],"check_results":null}"#;
    assert_eq!(make_room(state, "thing.a[0]", "old"), Ok(None), "it is that object already");
    assert_eq!(make_room(state, "thing.b", "new"), Ok(None), "the place is free");
    let moved = make_room(state, "thing.a[0]", "new").expect("a state").expect("a change");
    assert_eq!(moved, make_room(state, "thing.a[0]", "new").expect("a state").expect("a change"), "always the same");
    let [stays, moved_to] = &addresses(&moved)[..] else { panic!("two objects: {:?}", addresses(&moved)) };
    assert_eq!(stays, "thing.a[1]");
    assert!(moved_to.starts_with("thing.a_replaced_") && !moved_to.contains('['), "{moved_to}");
    assert_eq!(make_room(&moved, "thing.a[0]", "new"), Ok(None), "once is enough");
}
