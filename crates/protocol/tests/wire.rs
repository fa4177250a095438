//! What is written on the wire is read back as the same, in both versions.

use std::collections::BTreeMap;

use landform_cty::{Type, Value};
use landform_protocol::wire::{Call, Types, Version, WireError, schema_from_wire, schema_to_wire, tfplugin};
use landform_protocol::*;
use prost::Message;

fn attribute(kind: AttributeKind) -> Attribute {
    Attribute {
        kind,
        required: false,
        optional: true,
        computed: true,
        sensitive: true,
        write_only: true,
        description: "what it is".into(),
        deprecated: Some("take another".into()),
    }
}

fn plain(ty: Type) -> Attribute {
    attribute(AttributeKind::Plain(ty))
}

fn schema() -> ProviderSchema {
    let inner = Block { attributes: BTreeMap::from([("port".into(), plain(Type::Number))]), ..Block::default() };
    let open = Block { attributes: BTreeMap::from([("any".into(), plain(Type::Dynamic))]), ..Block::default() };
    let nested = |nesting, block: &Block| NestedBlock { nesting, block: block.clone(), min_items: 1, max_items: 3 };
    let block = Block {
        attributes: BTreeMap::from([
            ("name".into(), plain(Type::String)),
            ("tags".into(), plain(Type::map(Type::String))),
            ("any".into(), plain(Type::Dynamic)),
        ]),
        blocks: BTreeMap::from([
            ("single".into(), nested(Nesting::Single, &inner)),
            ("group".into(), nested(Nesting::Group, &inner)),
            ("list".into(), nested(Nesting::List, &inner)),
            ("set".into(), nested(Nesting::Set, &inner)),
            ("map".into(), nested(Nesting::Map, &inner)),
            ("open_list".into(), nested(Nesting::List, &open)),
            ("open_map".into(), nested(Nesting::Map, &open)),
        ]),
        description: "a thing".into(),
        deprecated: Some("take another".into()),
        ..Block::default()
    };
    ProviderSchema {
        provider: Schema { version: 0, block: inner },
        resources: BTreeMap::from([("x_thing".into(), Schema { version: 3, block: block.clone() })]),
        data_sources: BTreeMap::from([("x_data".into(), Schema { version: 0, block })]),
        identities: BTreeMap::new(),
        provider_meta: Some(Schema { version: 0, block: Block::default() }),
        capabilities: ServerCapabilities {
            plan_destroy: true,
            get_provider_schema_optional: true,
            move_resource_state: false,
        },
    }
}

#[test]
fn a_schema_survives_both_versions() {
    for version in Version::ALL {
        let bytes = schema_to_wire(version, &schema()).unwrap();
        let (read, diagnostics) = schema_from_wire(version, &bytes).unwrap();
        assert_eq!(read, schema());
        assert!(diagnostics.is_empty());
    }
}

#[test]
fn nested_attributes_need_protocol_6() {
    let attributes = BTreeMap::from([("size".into(), plain(Type::Number))]);
    let nested = attribute(AttributeKind::Nested { nesting: Nesting::List, attributes });
    let mut schema = schema();
    schema.provider.block.attributes.insert("disks".into(), nested);
    let bytes = schema_to_wire(Version::V6, &schema).unwrap();
    assert_eq!(schema_from_wire(Version::V6, &bytes).unwrap().0, schema);
    assert!(matches!(schema_to_wire(Version::V5, &schema), Err(WireError::Schema { .. })));
    let disks = Type::list(Type::object([("size", Type::Number)]));
    assert_eq!(schema.provider.block.implied_type().attribute("disks"), Some(&disks));
}

#[test]
fn the_implied_type_follows_the_nesting() {
    let ty = schema().resources["x_thing"].block.implied_type();
    let inner = Type::object([("port", Type::Number)]);
    for (name, expected) in [
        ("name", Type::String),
        ("single", inner.clone()),
        ("group", inner.clone()),
        ("list", Type::list(inner.clone())),
        ("set", Type::set(inner.clone())),
        ("map", Type::map(inner)),
        ("open_list", Type::Dynamic),
        ("open_map", Type::Dynamic),
    ] {
        assert_eq!(ty.attribute(name), Some(&expected), "{name}");
    }
}

#[test]
fn nonsense_is_an_error() {
    assert!(schema_from_wire(Version::V5, b"\xff\xff\xff").is_err());
    assert!(schema_from_wire(Version::V6, &[0x0a, 0x7f]).is_err());
}

#[test]
fn a_plan_survives_with_its_unknowns_private_bytes_and_paths() {
    let types = Types::new(&schema());
    let config = Value::object([("port", Value::unknown(Type::Number))]);
    let call = wire_call(&types, &wire::ValidateProviderConfig(config.clone()));
    assert_eq!(call.0, config);

    let ty = types.resource("x_thing").unwrap();
    let plan = PlanResourceChange {
        type_name: "x_thing".into(),
        prior: Value::null(ty.clone()),
        proposed: Value::unknown(ty.clone()),
        config: Value::null(ty.clone()),
        prior_private: b"\x00private\xff".to_vec(),
        prior_identity: None,
    };
    let read = wire_call(&types, &plan);
    let meta = plan.to_wire(&types).unwrap().provider_meta.map(|meta| meta.msgpack);
    assert_eq!(meta, Some(vec![0xc0]), "a provider with a schema for it is sent a null");
    assert_eq!((&read.prior, &read.proposed, &read.config), (&plan.prior, &plan.proposed, &plan.config));
    assert_eq!(read.prior_private, plan.prior_private);

    let path = vec![Step::Attribute("tags".into()), Step::Key("a".into()), Step::Index(7)];
    let diagnostic = Diagnostic {
        severity: Severity::Warning,
        summary: "hm".into(),
        detail: "hm hm".into(),
        attribute: Some(path.clone()),
    };
    let answer = PlanAnswer {
        planned: plan.proposed.clone(),
        requires_replace: vec![path.clone()],
        planned_private: vec![1, 2, 3],
        planned_identity: None,
        legacy_type_system: true,
        diagnostics: vec![diagnostic.clone()],
    };
    let wire = PlanResourceChange::answer_to_wire(answer, &plan, &types).unwrap();
    let answer = plan.answer_from_wire(wire, &types).unwrap();
    assert_eq!(answer.planned, plan.proposed);
    assert_eq!(answer.requires_replace, [path]);
    assert_eq!(answer.planned_private, [1, 2, 3]);
    assert!(answer.legacy_type_system);
    assert_eq!(answer.diagnostics, [diagnostic]);
}

fn wire_call<C: Call>(types: &Types, call: &C) -> C {
    let bytes = call.to_wire(types).unwrap().encode_to_vec();
    C::from_wire(C::Request::decode(&bytes[..]).unwrap(), types).unwrap()
}

#[test]
fn a_missing_value_is_null_and_an_unknown_type_an_error() {
    let types = Types::new(&schema());
    let call = |name: &str| ReadResource {
        type_name: name.into(),
        current: Value::null(Type::Dynamic),
        private: vec![],
        identity: None,
    };
    let answer = call("x_thing").answer_from_wire(tfplugin::read_resource::Response::default(), &types).unwrap();
    assert!(answer.new_state.is_null());
    let error = call("x_other").to_wire(&types).unwrap_err();
    assert_eq!(error.to_string(), "the provider has no resource type \"x_other\"");
}

#[test]
fn a_postponed_object_is_refused() {
    let types = Types::new(&schema());
    let call = ReadResource {
        type_name: "x_thing".into(),
        current: Value::null(Type::Dynamic),
        private: vec![],
        identity: None,
    };
    let response = tfplugin::read_resource::Response { deferred: Some(Default::default()), ..Default::default() };
    assert!(matches!(call.answer_from_wire(response, &types), Err(WireError::Deferred)));
}
