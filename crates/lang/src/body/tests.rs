use landform_cty::Mark;

use super::*;
use crate::source::Source;
use crate::{Cause, Reference};

struct Secret;

impl Scope for Secret {
    fn resolve(&self, _: &Reference) -> Result<Value, Diagnostic> {
        Ok(Value::from("s3cret").with_mark(Mark::Sensitive))
    }
}

fn attribute(ty: Type, required: bool) -> AttributeSpec {
    AttributeSpec { ty, required }
}

fn block(nesting: Nesting, max_items: u64) -> BlockSpec {
    let body = BodySpec { attributes: [("n".to_owned(), attribute(Type::Number, true))].into(), blocks: [].into() };
    BlockSpec { nesting, body, min_items: 0, max_items }
}

fn spec() -> BodySpec {
    BodySpec {
        attributes: [
            ("name".to_owned(), attribute(Type::String, true)),
            ("tags".to_owned(), attribute(Type::map(Type::String), false)),
            ("any".to_owned(), attribute(Type::Dynamic, false)),
            ("objects".to_owned(), attribute(Type::list(Type::object([("a", Type::String)])), false)),
        ]
        .into(),
        blocks: [
            ("single".to_owned(), block(Nesting::Single, 0)),
            ("group".to_owned(), block(Nesting::Group, 0)),
            ("list".to_owned(), block(Nesting::List, 2)),
            ("set".to_owned(), block(Nesting::Set, 0)),
            ("map".to_owned(), block(Nesting::Map, 0)),
        ]
        .into(),
    }
}

fn decode(text: &str) -> Result<Value, Diagnostics> {
    let body = Source::new("main.tf", text).parse_body()?;
    decode_body(&body, &spec(), &Secret, &mut Budget::default())
}

#[test]
fn every_attribute_is_there_and_of_its_type() {
    let value = decode(
        "name = 5\nany = [1]\nlist {\n n = \"1\"\n}\nset {\n n = 1\n}\nset {\n n = 1\n}\nmap \"k\" {\n n = 2\n}\n",
    )
    .unwrap();
    assert_eq!(
        format!("{value:?}"),
        r#"{"any": [1], "group": {"n": null}, "list": [{"n": 1}], "map": {"k": {"n": 2}}, "name": "5", "objects": null, "set": [{"n": 1}], "single": null, "tags": null}"#
    );
    let Type::Object { attributes, .. } = spec().implied_type() else { panic!("an object") };
    for (name, ty) in attributes.iter().filter(|(name, _)| *name != "any") {
        assert_eq!(value.get(name).unwrap().ty, *ty, "{name}");
    }
}

#[test]
fn marks_stay_where_they_are() {
    let value = decode("name = var.x\ntags = { a = var.x, b = 1 }").unwrap();
    assert!(value.marks.is_empty());
    assert!(value.get("name").unwrap().has_mark(Mark::Sensitive));
    let tags = value.get("tags").unwrap();
    assert!(tags.marks.is_empty() && tags.get("a").unwrap().has_mark(Mark::Sensitive));
}

#[test]
fn all_mistakes_are_reported() {
    let found =
        decode("nmae = 1\ntags = 5\nlist {\n}\nlist {\n n = 1\n}\nlist {\n n = 1\n}\nsingle = 1\nany {}\nobjects {}\n")
            .unwrap_err();
    let messages: Vec<String> = found.0.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "main.tf:1,1: Unsupported argument: An argument named \"nmae\" is not expected here. Did you mean \"name\"?",
            "main.tf:11,1: Unsupported argument: An argument named \"single\" is not expected here. Did you mean to define a block of type \"single\"?",
            "main.tf:12,1: Unsupported block type: Blocks of type \"any\" are not expected here. Did you mean to define argument \"any\"? If so, use the equals sign to assign it a value.",
            "main.tf:13,1: Unsupported construct: attribute objects as blocks",
            "main.tf:1,1: Missing required argument: The argument \"name\" is required, but no definition was found.",
            "main.tf:2,8: Incorrect attribute value type: Inappropriate value for attribute \"tags\": map of string required, but have number.",
            "main.tf:3,6: Missing required argument: The argument \"n\" is required, but no definition was found.",
            "main.tf:8,1: Too many list blocks: No more than 2 \"list\" blocks are allowed",
        ]
    );
    assert_eq!(found.0[3].cause, Cause::Unsupported);
}
