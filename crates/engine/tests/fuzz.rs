//! No bytes may end the process that reads them: states and plans, changed at random, give a value or an error.
//! A panic, an overflow of the stack or memory without end is a failing test. `FUZZ_MINUTES` makes it run for longer than a
//! moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landform_engine::native::{self, Located, Native, Providers, Requirement};
use landform_engine::state::{self, State};
use landform_engine::{Diagnostic, Engine, Mode, PlanRequest, Silent, Stop, Workspace};
use landform_protocol::Provider;

/// Rounds without `FUZZ_MINUTES`.
const ROUNDS: u64 = 5_000;

/// What is read here needs no provider.
struct Nobody;

#[async_trait]
impl Providers for Nobody {
    async fn locate(&self, _: &Path, requirement: &Requirement) -> Result<Located, Diagnostic> {
        Err(Diagnostic::error("There are no providers", requirement.source.clone()))
    }

    async fn start(&self, located: &Located, _: &BTreeMap<String, String>) -> Result<Arc<dyn Provider>, Diagnostic> {
        Err(Diagnostic::error("There are no providers", located.source.clone()))
    }
}

/// Small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

/// All that a state can hold.
const STATE: &str = r#"{"version": 4, "terraform_version": "1.12.6", "serial": 3, "lineage": "l",
    "outputs": {"o": {"value": {"a": [1, "x", null]}, "type": ["object", {"a": ["tuple", ["number", "string", "dynamic"]]}],
        "sensitive": true}, "n": {"value": 12345678901234567890.5, "type": "number"}},
    "resources": [
        {"module": "module.m[\"k.[\\\"x\"]", "mode": "managed", "type": "t", "name": "a", "provider": "provider[\"h/n/t\"]",
         "instances": [{"index_key": 0, "schema_version": 1, "attributes": {"id": "1", "l": [{"b": true}]},
            "sensitive_attributes": [[{"type": "get_attr", "value": "l"}, {"type": "index", "value": {"value": 0, "type": "number"}}]],
            "private": "cHJpdmF0ZQ==", "dependencies": ["t.b"], "create_before_destroy": true,
            "identity": {"id": "1"}, "identity_schema_version": 1},
            {"index_key": "k", "deposed": "0011aabb", "status": "tainted", "schema_version": 0, "attributes": {}}]},
        {"mode": "data", "type": "t", "name": "d", "provider": "provider[\"h/n/t\"].far", "instances": [
            {"schema_version": 0, "attributes": {"id": "d"}}]}],
    "check_results": [{"object_kind": "check", "config_addr": "check.c", "status": "fail", "objects": [
        {"object_addr": "check.c", "status": "fail", "failure_messages": ["No."]}]}]}"#;

/// Pieces of JSON, and of what is packed inside of a plan, that are likely to lead somewhere.
const PIECES: [&[u8]; 22] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\\u0000",
    b"\\ud800",
    b"module.a[",
    b"[\"set\",\"string\"]",
    b"[\"object\",{\"a\":\"number\"},[\"a\"]]",
    b"\xff",
    // Lengths that nothing follows: of a list, a map, a text and an extension.
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x0c",
    b"\xd4\x00\x00",
];

fn mutate(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        let end = (at + dice.roll(12)).min(bytes.len());
        match dice.roll(5) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let copied = bytes[at..end].to_vec();
                bytes.splice(at..at, copied);
            }
            2 => drop(bytes.splice(at..end, PIECES[dice.roll(PIECES.len())].iter().copied())),
            3 => drop(bytes.splice(at..at, PIECES[dice.roll(PIECES.len())].iter().copied())),
            _ => {
                if at < bytes.len() {
                    bytes[at] = dice.roll(256) as u8;
                }
            }
        }
    }
    bytes
}

/// Changes what is packed inside of one of the texts of a plan, so that all around it stays sound.
fn mutate_inside(dice: &mut Dice, plan: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(plan).into_owned();
    let mark = "{\"value\":\"";
    let places: Vec<usize> = text.match_indices(mark).map(|(at, _)| at + mark.len()).collect();
    let begin = places[dice.roll(places.len())];
    let end = begin + text[begin..].find('"').unwrap();
    let packed = mutate(dice, STANDARD.decode(&text[begin..end]).unwrap());
    format!("{}{}{}", &text[..begin], STANDARD.encode(packed), &text[end..]).into_bytes()
}

/// Goes on for the rounds, or for the minutes that `FUZZ_MINUTES` says.
fn survives(make: impl Fn(&mut Dice) -> Vec<u8>, read: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let minutes: Option<u64> = std::env::var("FUZZ_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let end = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let seed = minutes.map_or(1, |_| u64::from(std::process::id()) | 1);
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut round = 0;
    while end.map_or(round < ROUNDS, |end| Instant::now() < end) {
        round += 1;
        let bytes = make(&mut dice);
        let result = std::panic::catch_unwind(|| read(&bytes));
        assert!(result.is_ok(), "this ends the process: {:?}", String::from_utf8_lossy(&bytes));
    }
}

/// A state that can be read can be looked through, written and read again.
fn read_state(bytes: &[u8]) {
    if let Ok(read) = State::read(bytes) {
        let _ = native::outputs(&read);
        let _ = state::make_room(bytes, "t.a", "2");
        let objects = read.objects().count();
        let again = State::read(&read.write()).expect("what was written can be read");
        assert_eq!(again.objects().count(), objects);
    }
}

#[test]
fn no_state_ends_the_process() {
    assert!(State::read(STATE.as_bytes()).is_ok());
    survives(|dice| mutate(dice, STATE.as_bytes().to_vec()), read_state);
}

fn engine() -> Native {
    Native::new(Arc::new(Nobody))
}

/// The plan of a small configuration with what is built in.
fn plan() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let text = "variable \"v\" {\n  default   = { a = [1, \"x\"] }\n  sensitive = true\n}\n\
                resource \"terraform_data\" \"d\" {\n  count = 2\n  input = { v = var.v, l = [true, null], n = 1.5e10 }\n}\n\
                check \"c\" {\n  assert {\n    condition     = terraform_data.d[0].id != \"\"\n    error_message = \"No.\"\n  }\n}\n\
                output \"o\" {\n  value = terraform_data.d[*].id\n}\noutput \"k\" {\n  value = { a = toset([\"x\"]) }\n}\n";
    std::fs::write(folder.path().join("main.tf"), text).unwrap();
    let workspace = Workspace {
        folder: folder.path().to_owned(),
        scratch: folder.path().to_owned(),
        variables: BTreeMap::new(),
        state: None,
        environment: BTreeMap::new(),
    };
    let request = PlanRequest {
        workspace: &workspace,
        mode: Mode::Normal,
        adopt: Vec::new(),
        replace: Vec::new(),
        doubted: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(engine().plan(request, &Silent, &Stop::new())).unwrap().bytes
}

#[test]
fn no_plan_ends_the_process() {
    let (plan, engine) = (plan(), std::panic::AssertUnwindSafe(engine()));
    assert!(engine.check_plan(&plan).is_ok());
    let read = |bytes: &[u8]| drop(engine.check_plan(bytes));
    survives(|dice| if dice.roll(2) == 0 { mutate(dice, plan.clone()) } else { mutate_inside(dice, &plan) }, read);
}

/// What is nested deeply is paid for with the reader's stack.
#[test]
fn deep_nesting_is_an_error() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    for nested in [deep("[", "]"), deep("{\"a\":", "}"), deep("[\"list\",", "]")] {
        for place in
            ["{\"a\": [1, \"x\", null]}", "[\"object\", {\"a\": [\"tuple\", [\"number\", \"string\", \"dynamic\"]]}]"]
        {
            read_state(STATE.replacen(place, &nested, 1).as_bytes());
        }
        read_state(nested.as_bytes());
        assert!(engine().check_plan(nested.as_bytes()).is_err());
    }
    let plan = String::from_utf8(plan()).unwrap();
    let begin = plan.find("{\"value\":\"").unwrap() + 10;
    let end = begin + plan[begin..].find('"').unwrap();
    for packed in [vec![0x91; 100_000], [b"\x92\xc4\x09\"dynamic\"".repeat(10_000), vec![0xc0]].concat()] {
        let changed = format!("{}{}{}", &plan[..begin], STANDARD.encode(packed), &plan[end..]);
        assert!(engine().check_plan(changed.as_bytes()).is_err());
    }
}
