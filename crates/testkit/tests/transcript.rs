//! The judge of the native engine is judged: two recordings of the same story are equal, and every change is found.

use std::path::Path;

use landform_cty::Value;
use landform_protocol::wire::tfplugin::{
    apply_resource_change, plan_resource_change, read_resource, validate_resource_config,
};
use landform_protocol::wire::{Types, from_dynamic, to_dynamic};
use landform_testkit::tofu::Tofu;
use landform_testkit::transcript::canonical::canonical;
use landform_testkit::transcript::{Call, Recorder, Response, Source, Transcript, compare};
use prost::Message;

const HEAD: &str = r#"
terraform {
  required_providers {
    time   = { source = "hashicorp/time" }
    coder  = { source = "coder/coder" }
    ledger = { source = "landform/ledger" }
  }
}
provider "ledger" { ledger = "LEDGER" }
"#;

/// Create, update, replace; the destroy comes last.
const STORY: [&str; 3] = [
    r#"
resource "time_static" "s" { triggers = { a = "1" } }
resource "time_rotating" "r" { rotation_days = 10 }
resource "coder_agent" "c" {
  os   = "linux"
  arch = "amd64"
}
resource "ledger_object" "a" { name = "a" }
resource "ledger_object" "b" {
  name = "b"
  kind = "of-${ledger_object.a.id}"
}
resource "ledger_object" "twin" {
  count = 2
  name  = "twin"
}
"#,
    r#"
resource "time_static" "s" { triggers = { a = "1" } }
resource "time_rotating" "r" { rotation_days = 20 }
resource "coder_agent" "c" {
  os   = "linux"
  arch = "arm64"
}
resource "ledger_object" "a" {
  name = "a"
  size = 1.5
}
resource "ledger_object" "b" {
  name = "b"
  kind = "of-${ledger_object.a.id}"
}
"#,
    r#"
resource "time_static" "s" { triggers = { a = "2" } }
resource "time_rotating" "r" { rotation_days = 20 }
resource "ledger_object" "a" {
  name = "a"
  kind = "k"
}
"#,
];

fn run(tofu: &Tofu, args: &[&str]) {
    let output = tofu.run(args.iter().chain(&["-input=false", "-no-color"])).unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "tofu {args:?}: {text}");
}

/// The story as the real CLI tells it.
fn tell(folder: &Path, name: &str, recorder: &Recorder) -> Transcript {
    let tofu = Tofu::new(&folder.join(name), recorder.mirror()).unwrap();
    let head = HEAD.replace("LEDGER", &folder.join("ledger").display().to_string());
    for (at, chapter) in STORY.iter().enumerate() {
        tofu.write("main.tf", &format!("{head}{chapter}")).unwrap();
        if at == 0 {
            run(&tofu, &["init"]);
        }
        run(&tofu, &["apply", "-auto-approve"]);
    }
    run(&tofu, &["destroy", "-auto-approve"]);
    recorder.take().unwrap()
}

fn same(left: &Transcript, right: &Transcript) {
    let differences = compare(left, right);
    let text: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(differences.is_empty(), "{} differences:\n{}", text.len(), text.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_story_is_the_same_and_every_change_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let sources = [Source::part("hashicorp/time"), Source::part("coder/coder"), Source::ledger()];
    let recorder = Recorder::new(folder.path(), &sources).await.unwrap();
    let left = tell(folder.path(), "left", &recorder);
    let right = tell(folder.path(), "right", &recorder);
    for method in ["ValidateResource", "UpgradeResourceState", "ReadResource", "PlanResource", "ApplyResource"] {
        for protocol in [5, 6] {
            let heard = left.calls.iter().any(|call| call.protocol == protocol && call.method.contains(method));
            assert!(heard, "{method} of protocol {protocol} is part of the story");
        }
    }
    same(&left, &right);
    assert!(canonical(&left, false).to_string().contains("of-«ledger_object#"), "an id is followed into other objects");
    assert!(recorder.take().unwrap().calls.is_empty(), "a transcript is taken once");

    for (name, mutate) in mutations() {
        let mut changed = left.clone();
        mutate(&mut changed);
        assert_ne!(changed.calls, left.calls, "{name}: the mutation changes something");
        assert!(!compare(&left, &changed).is_empty(), "{name} was not found");
        assert!(!compare(&changed, &left).is_empty(), "{name} was not found from the other side");
    }
}

/// Which of two objects that are alike is planned first is chance, also where none of them is made in the end.
#[tokio::test(flavor = "multi_thread")]
async fn twins_that_are_only_planned_have_no_order_and_one_object_has() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(folder.path(), &[Source::ledger()]).await.unwrap();
    let head = HEAD.replace("LEDGER", &folder.path().join("ledger").display().to_string());
    let head: String = head
        .lines()
        .filter(|line| !line.contains("hashicorp") && !line.contains("coder"))
        .map(|line| format!("{line}\n"))
        .collect();
    for (count, has_order) in [(1, true), (2, false)] {
        let tofu = Tofu::new(&folder.path().join(count.to_string()), recorder.mirror()).unwrap();
        let objects = format!("resource \"ledger_object\" \"twin\" {{\n  count = {count}\n  name  = \"twin\"\n}}\n");
        tofu.write("main.tf", &format!("{head}{objects}")).unwrap();
        run(&tofu, &["init"]);
        run(&tofu, &["plan"]);
        let planned = recorder.take().unwrap();
        let mut otherwise = planned.clone();
        otherwise.calls.sort_by_key(|call| !call.method.contains("PlanResource"));
        assert_ne!(planned.calls, otherwise.calls);
        assert_eq!(compare(&planned, &otherwise).is_empty(), !has_order, "{count}");
    }
}

/// `name = "a"` as msgpack has it.
const NAME_A: &[u8] = b"\xa4name\xa1a";

type Mutation = (&'static str, fn(&mut Transcript));

fn mutations() -> Vec<Mutation> {
    vec![
        ("private bytes dropped from an apply", |t| {
            let has_private = |m: &apply_resource_change::Request| !m.planned_private.is_empty();
            edit_request(t, "ApplyResourceChange", has_private, |m, _| m.planned_private.clear());
        }),
        ("private bytes dropped from an answer", |t| {
            let has_private = |m: &apply_resource_change::Response| !m.private.is_empty();
            edit_response(t, "ApplyResourceChange", has_private, |m| m.private.clear());
        }),
        ("an unknown turned into null", |t| {
            edit_request(t, "ApplyResourceChange", is_create, |m, types| {
                let ty = types.resource(&m.type_name).unwrap();
                let planned = from_dynamic("planned", m.planned_state.take(), ty).unwrap();
                let null =
                    planned.transform(&mut |_, value| if value.is_known() { value } else { Value::null(value.ty) });
                m.planned_state = to_dynamic("planned", &null, ty).unwrap();
            });
        }),
        ("a null turned into unknown", |t| {
            edit_request(
                t,
                "/ValidateResource",
                |m: &validate_resource_config::Request| is_static(&m.type_name),
                |m, types| {
                    let ty = types.resource(&m.type_name).unwrap();
                    let config = from_dynamic("config", m.config.take(), ty).unwrap();
                    let unknown = config
                        .transform(&mut |_, value| if value.is_null() { Value::unknown(value.ty) } else { value });
                    m.config = to_dynamic("config", &unknown, ty).unwrap();
                },
            );
        }),
        ("a refinement lost", |t| {
            edit_request(t, "ApplyResourceChange", is_create, |m, types| {
                let ty = types.resource(&m.type_name).unwrap();
                let planned = from_dynamic("planned", m.planned_state.take(), ty).unwrap();
                let refined =
                    planned.transform(&mut |_, v| if v.is_known() { v } else { Value::unknown_not_null(v.ty) });
                m.planned_state = to_dynamic("planned", &refined, ty).unwrap();
            });
        }),
        ("two calls swapped", |t| {
            let (first, second) = neighbours(t);
            t.calls.swap(first, second);
        }),
        ("a call dropped", |t| drop(t.calls.remove(position(t, "ReadResource")))),
        ("a call of a twin dropped", |t| {
            let twin = |m: &apply_resource_change::Request| contains(&m.config, b"twin");
            let at = find_request(t, "ApplyResourceChange", twin);
            t.calls.remove(at);
        }),
        ("a call repeated", |t| {
            let at = position(t, "PlanResourceChange");
            t.calls.insert(at, t.calls[at].clone());
        }),
        ("a planned field changed in the answer to a plan", |t| {
            let of_a = |m: &plan_resource_change::Response| contains(&m.planned_state, NAME_A);
            edit_response(t, "/tfplugin6.Provider/PlanResourceChange", of_a, |m| {
                replace(&mut m.planned_state, NAME_A, b"\xa4name\xa1x");
            });
        }),
        ("a computed field changed on its way from plan to apply", |t| {
            let rotating = |m: &apply_resource_change::Request| {
                m.type_name == "time_rotating" && !is_create(m) && contains(&m.planned_state, b"unix")
            };
            edit_request(t, "ApplyResourceChange", rotating, |m, types| {
                let ty = types.resource(&m.type_name).unwrap();
                let planned = from_dynamic("planned", m.planned_state.take(), ty).unwrap();
                let other = planned.transform(&mut |path, value| {
                    let unix = format!("{path:?}").contains("\"unix\"");
                    if unix { Value::number(7) } else { value }
                });
                m.planned_state = to_dynamic("planned", &other, ty).unwrap();
            });
        }),
        ("another object's id", |t| {
            let object = |m: &read_resource::Request| m.type_name == "ledger_object";
            edit_request(t, "ReadResource", object, |m, types| {
                let ty = types.resource(&m.type_name).unwrap();
                let state = from_dynamic("state", m.current_state.take(), ty).unwrap();
                let other = state.transform(&mut |path, value| {
                    if format!("{path:?}").contains("\"id\"") { Value::string("f".repeat(32)) } else { value }
                });
                m.current_state = to_dynamic("state", &other, ty).unwrap();
            });
        }),
        ("a client's capability not declared", |t| {
            edit_request(
                t,
                "PlanResourceChange",
                |_: &plan_resource_change::Request| true,
                |m, _| {
                    m.client_capabilities = None;
                },
            );
        }),
        ("another configuration of the provider", |t| {
            let at = t.calls.iter().position(|call| call.method.ends_with("/ConfigureProvider")).unwrap();
            let path = t.calls[at].request.windows(6).position(|window| window == b"ledger").unwrap();
            t.calls[at].request[path + 8] = b'X';
        }),
        ("a path that requires replacement lost", |t| {
            let replaces = |m: &plan_resource_change::Response| !m.requires_replace.is_empty();
            edit_response(t, "PlanResourceChange", replaces, |m| m.requires_replace.clear());
        }),
        ("the legacy type system not declared", |t| {
            let legacy = |m: &plan_resource_change::Response| m.legacy_type_system;
            edit_response(t, "PlanResourceChange", legacy, |m| m.legacy_type_system = false);
        }),
        ("a field that we do not know", |t| {
            let at = position(t, "ApplyResourceChange");
            t.calls[at].request.extend([0xf8, 0x07, 0x01]);
        }),
        ("an error in place of an answer", |t| {
            let at = position(t, "ReadResource");
            t.calls[at].response = Response::Status { code: 14, message: "gone".into() };
        }),
    ]
}

fn is_create(m: &apply_resource_change::Request) -> bool {
    m.prior_state.as_ref().is_some_and(|prior| prior.msgpack == [0xc0])
}

fn is_static(type_name: &str) -> bool {
    type_name == "time_static"
}

fn contains(value: &Option<landform_protocol::wire::tfplugin::DynamicValue>, bytes: &[u8]) -> bool {
    value.as_ref().is_some_and(|value| value.msgpack.windows(bytes.len()).any(|window| window == bytes))
}

fn replace(value: &mut Option<landform_protocol::wire::tfplugin::DynamicValue>, from: &[u8], to: &[u8]) {
    let bytes = &mut value.as_mut().unwrap().msgpack;
    let at = bytes.windows(from.len()).position(|window| window == from).expect("the field is there");
    bytes[at..at + to.len()].copy_from_slice(to);
}

fn position(t: &Transcript, method: &str) -> usize {
    t.calls.iter().position(|call| call.method.contains(method)).unwrap()
}

fn find_request<M: Message + Default>(t: &Transcript, method: &str, wanted: impl Fn(&M) -> bool) -> usize {
    let fits = |call: &Call| call.method.contains(method) && wanted(&M::decode(&call.request[..]).unwrap());
    t.calls.iter().position(fits).expect("the story has such a call")
}

fn edit_request<M: Message + Default>(
    t: &mut Transcript,
    method: &str,
    wanted: impl Fn(&M) -> bool,
    edit: impl Fn(&mut M, &Types),
) {
    let at = find_request(t, method, wanted);
    let types = Types::new(&t.schemas[&t.calls[at].provider]);
    let mut message = M::decode(&t.calls[at].request[..]).unwrap();
    edit(&mut message, &types);
    t.calls[at].request = message.encode_to_vec();
}

fn edit_response<M: Message + Default>(
    t: &mut Transcript,
    method: &str,
    wanted: impl Fn(&M) -> bool,
    edit: impl Fn(&mut M),
) {
    let message = |call: &Call| match &call.response {
        Response::Message(bytes) if call.method.contains(method) => M::decode(&bytes[..]).ok(),
        _ => None,
    };
    let at = t.calls.iter().position(|call| message(call).is_some_and(|m| wanted(&m))).expect("such an answer");
    let mut changed = message(&t.calls[at]).unwrap();
    edit(&mut changed);
    t.calls[at].response = Response::Message(changed.encode_to_vec());
}

/// A read and the plan after it, of the one `time_static`.
fn neighbours(t: &Transcript) -> (usize, usize) {
    let is = |call: &Call, method: &str| {
        call.method.ends_with(method) && call.request.windows(11).any(|window| window == b"time_static")
    };
    let first = t.calls.iter().position(|call| is(call, "ReadResource")).unwrap();
    let second = t.calls.iter().skip(first).position(|call| is(call, "PlanResourceChange")).unwrap();
    (first, first + second)
}
