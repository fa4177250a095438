//! What becomes of a value and of all that is in it, as people are told.

use std::collections::BTreeMap;

use landform_cty::Type;
use landform_protocol::{Attribute, AttributeKind, Block, NestedBlock, Nesting};
use serde_json::{Value as Json, json};

use super::place::Place;
use super::sequence::pairs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Stays,
    Comes,
    Goes,
    Changes,
}

pub struct Diff {
    pub act: Act,
    /// The change cannot be made in place.
    pub forces: bool,
    pub kind: Kind,
}

pub enum Kind {
    Text {
        before: Option<String>,
        after: Option<String>,
    },
    /// A number, a bool, or null.
    Word {
        before: String,
        after: String,
    },
    /// `schema`: a schema knows its attributes.
    Object {
        fields: BTreeMap<String, Diff>,
        schema: bool,
    },
    Map {
        elements: BTreeMap<String, Diff>,
        schema: bool,
    },
    /// `context`: what stands beside a change is shown.
    List {
        elements: Vec<Diff>,
        context: bool,
    },
    Set {
        elements: Vec<Diff>,
        schema: bool,
    },
    Block {
        attributes: BTreeMap<String, Diff>,
        blocks: BTreeMap<String, Blocks>,
    },
    /// With what there was before.
    Unknown(Option<Box<Diff>>),
    Secret {
        inner: Box<Diff>,
        was: bool,
        is: bool,
        block: bool,
    },
    WriteOnly,
    /// Of one kind before, and of another one then.
    Other(Box<Diff>, Box<Diff>),
}

/// The blocks of one name, with their keys where they have some.
pub struct Blocks {
    pub blocks: Vec<(Option<String>, Diff)>,
    pub forces: bool,
    pub was_secret: bool,
    pub is_secret: bool,
}

impl Act {
    /// Of the whole, when something is known of one more part.
    fn with(self, part: Act) -> Act {
        if part == Act::Stays || part == self { self } else { Act::Changes }
    }

    fn of_sides(before: bool, after: bool) -> Act {
        match (before, after) {
            (false, true) => Act::Comes,
            (true, false) => Act::Goes,
            _ => Act::Stays,
        }
    }
}

fn whole(place: &Place<'_>) -> Act {
    Act::of_sides(place.before_value().is_some(), place.after_value().is_some())
}

/// Of a value that is not put together of others.
fn of_value(place: &Place<'_>, after_given: bool) -> Act {
    let (was, is) = place.secret();
    match (place.before.is_some(), place.after.is_some() || after_given) {
        (false, true) => Act::Comes,
        (true, false) => Act::Goes,
        _ if place.before_value() == place.after_value() && was == is => Act::Stays,
        _ => Act::Changes,
    }
}

type Compute<'c> = &'c dyn Fn(&Place<'_>) -> Diff;

/// A secret, if it is one.
fn secret(place: &Place<'_>, block: bool, compute: Compute<'_>) -> Option<Diff> {
    let (was, is) = place.secret();
    if !was && !is {
        return None;
    }
    let inner = compute(&place.revealed());
    let nothing = place.before.is_none() && place.after.is_none();
    let act = if inner.act == Act::Stays && was != is && !nothing { Act::Changes } else { inner.act };
    Some(Diff { act, forces: place.forcing.here(), kind: Kind::Secret { inner: Box::new(inner), was, is, block } })
}

/// What is not known yet, if it is not. `inside`: what is unknown of what there was, so that it does not read as gone.
fn unknown(place: &Place<'_>, inside: Option<&Json>, compute: Compute<'_>) -> Option<Diff> {
    if !place.is_unknown() {
        return None;
    }
    let before = place.before_value().map(|_| Box::new(compute(&Place { unknown: inside, ..place.going() })));
    Some(Diff { act: of_value(place, true), forces: place.forcing.here(), kind: Kind::Unknown(before) })
}

fn all_unknown<'a>(names: impl Iterator<Item = &'a String>) -> Json {
    names.map(|name| (name.clone(), json!(true))).collect::<serde_json::Map<_, _>>().into()
}

pub fn of_block(place: &Place<'_>, block: &Block) -> Diff {
    if let Some(diff) = secret(place, true, &|place| of_block(place, block)) {
        return diff;
    }
    if let Some(diff) = unknown_block(place, block) {
        return diff;
    }
    let mut act = whole(place);
    let mut attributes = BTreeMap::new();
    // What is only written shows as the rest does, so the rest comes first.
    for only_written in [false, true] {
        for (name, attribute) in block.attributes.iter().filter(|(_, one)| one.write_only == only_written) {
            let mut place = place.field(name).if_relevant().implicit();
            // Providers of the older kind cannot tell an empty text from none.
            place.before = place.before.filter(|text| **text != json!(""));
            place.after = place.after.filter(|text| **text != json!(""));
            let diff = of_attribute(&place, attribute, act);
            if diff.act == Act::Stays && place.is_empty() && !only_written {
                continue;
            }
            act = act.with(diff.act);
            attributes.insert(name.clone(), diff);
        }
    }
    let mut blocks = BTreeMap::new();
    for (name, nested) in &block.blocks {
        let place = place.field(name).if_relevant();
        let (diffs, part) = match unknown_block(&place, block) {
            // It says nothing about the whole.
            Some(diff) => (vec![(None, diff)], Act::Stays),
            None => of_blocks(&place, nested),
        };
        if place.is_empty() && diffs.iter().all(|(_, diff)| diff.act == Act::Stays) {
            continue;
        }
        act = act.with(part);
        let (was_secret, is_secret) = place.secret();
        let forces = place.forcing.here();
        blocks.insert(name.clone(), Blocks { blocks: diffs, forces, was_secret, is_secret });
    }
    Diff { act, forces: place.forcing.here(), kind: Kind::Block { attributes, blocks } }
}

fn unknown_block(place: &Place<'_>, block: &Block) -> Option<Diff> {
    unknown(place, Some(&all_unknown(block.attributes.keys())), &|place| of_block(place, block))
}

/// All blocks of one name, and what becomes of them together.
fn of_blocks(place: &Place<'_>, nested: &NestedBlock) -> (Vec<(Option<String>, Diff)>, Act) {
    let block = |place: &Place<'_>| of_block(place, &nested.block);
    let diffs: Vec<(Option<String>, Diff)> = match nested.nesting {
        Nesting::Single | Nesting::Group => {
            let diff = block(place);
            let act = diff.act;
            return (vec![(None, diff)], act);
        }
        Nesting::List => in_order(place).iter().map(|place| (None, block(place))).collect(),
        Nesting::Set => as_set(place).iter().map(|place| (None, block(place))).collect(),
        Nesting::Map => {
            let named = |name: &String| (Some(name.clone()), block(&place.field(name).if_relevant()));
            place.names().into_iter().map(named).collect()
        }
    };
    let act = diffs.iter().fold(whole(place), |act, (_, diff)| act.with(diff.act));
    (diffs, act)
}

/// `around`: what becomes of what it is an attribute of.
fn of_attribute(place: &Place<'_>, attribute: &Attribute, around: Act) -> Diff {
    if attribute.write_only {
        let forces = place.forcing.here();
        let act = if around == Act::Stays && forces { Act::Changes } else { around };
        return Diff { act, forces, kind: Kind::WriteOnly };
    }
    match &attribute.kind {
        AttributeKind::Plain(ty) => of_type(place, ty),
        AttributeKind::Nested { nesting, attributes } => of_nested(place, *nesting, attributes),
    }
}

fn of_nested(place: &Place<'_>, nesting: Nesting, attributes: &BTreeMap<String, Attribute>) -> Diff {
    let again = |place: &Place<'_>| of_nested(place, nesting, attributes);
    if let Some(diff) = secret(place, false, &again) {
        return diff;
    }
    if let Some(diff) = unknown(place, Some(&all_unknown(attributes.keys())), &again) {
        return diff;
    }
    let object = |place: &Place<'_>| of_nested(place, Nesting::Single, attributes);
    let elements = |places: Vec<Place<'_>>| places.iter().map(object).collect::<Vec<Diff>>();
    let (act, kind) = match nesting {
        Nesting::Single | Nesting::Group => {
            let mut act = whole(place);
            let mut fields = BTreeMap::new();
            for (name, attribute) in attributes {
                field(place, name, &mut act, &mut fields, |place, act| of_attribute(place, attribute, act));
            }
            (act, Kind::Object { fields, schema: true })
        }
        Nesting::Map => {
            let named = |name: &String| (name.clone(), object(&place.field(name).if_relevant()));
            let elements: BTreeMap<String, Diff> = place.names().into_iter().map(named).collect();
            (together(mapping_act(place), elements.values()), Kind::Map { elements, schema: true })
        }
        Nesting::List => {
            let elements = elements(in_order(place));
            (together(whole(place), &elements), Kind::List { elements, context: false })
        }
        Nesting::Set => {
            let elements = elements(as_set(place));
            (together(whole(place), &elements), Kind::Set { elements, schema: true })
        }
    };
    Diff { act, forces: place.forcing.here(), kind }
}

fn together<'d>(whole: Act, parts: impl IntoIterator<Item = &'d Diff>) -> Act {
    parts.into_iter().fold(whole, |act, diff| act.with(diff.act))
}

/// A field of an object; one that is null on both sides is none.
fn field(
    place: &Place<'_>,
    name: &str,
    act: &mut Act,
    fields: &mut BTreeMap<String, Diff>,
    compute: impl FnOnce(&Place<'_>, Act) -> Diff,
) {
    let place = place.field(name).if_relevant().implicit();
    let diff = compute(&place, *act);
    if diff.act == Act::Stays && place.is_empty() {
        return;
    }
    *act = act.with(diff.act);
    fields.insert(name.to_owned(), diff);
}

pub fn of_type(place: &Place<'_>, ty: &Type) -> Diff {
    let again = |place: &Place<'_>| of_type(place, ty);
    if let Some(diff) = secret(place, false, &again).or_else(|| unknown(place, None, &again)) {
        return diff;
    }
    let (act, kind) = match ty {
        Type::Dynamic => return of_any(place),
        Type::Bool | Type::Number | Type::String => {
            (of_value(place, false), primitive(place, matches!(ty, Type::String)))
        }
        Type::Object { attributes, .. } => {
            let mut act = whole(place);
            let mut fields = BTreeMap::new();
            for (name, ty) in attributes.iter() {
                field(place, name, &mut act, &mut fields, |place, _| of_type(place, ty));
            }
            (act, Kind::Object { fields, schema: false })
        }
        Type::Map(element) => {
            let named = |name: &String| (name.clone(), of_type(&place.field(name).if_relevant(), element));
            let elements: BTreeMap<String, Diff> = place.all_names().into_iter().map(named).collect();
            (together(mapping_act(place), elements.values()), Kind::Map { elements, schema: false })
        }
        Type::List(element) => {
            let objects = matches!(**element, Type::Object { .. });
            let places = aligned(place, &|one, other| objects || lines_in_common(one, other));
            let elements: Vec<Diff> = places.iter().map(|place| of_type(place, element)).collect();
            (together(listing_act(place), &elements), Kind::List { elements, context: true })
        }
        Type::Tuple(types) => {
            let each = types.iter().enumerate();
            let elements: Vec<Diff> =
                each.map(|(at, ty)| of_type(&place.element(Some(at), Some(at)).if_relevant(), ty)).collect();
            (together(whole(place), &elements), Kind::List { elements, context: true })
        }
        Type::Set(element) => {
            let elements: Vec<Diff> = as_set(place).iter().map(|place| of_type(place, element)).collect();
            (together(whole(place), &elements), Kind::Set { elements, schema: false })
        }
    };
    Diff { act, forces: place.forcing.here(), kind }
}

/// A value of which no type is known beforehand: that of an output, of an attribute of any type, or in a text that is
/// JSON.
pub fn of_any(place: &Place<'_>) -> Diff {
    let plain = |act: Act, kind: Kind| Diff { act, forces: false, kind };
    if let Some(diff) = secret(place, false, &of_any) {
        return diff;
    }
    if place.is_unknown() {
        return match place.before_value() {
            None => plain(Act::Comes, Kind::Unknown(None)),
            Some(_) => plain(Act::Changes, Kind::Unknown(Some(Box::new(of_any(&place.going()))))),
        };
    }
    let kinds = (kind_of(place.before_value()), kind_of(place.after_value()));
    if kinds.0 == kinds.1 || place.before.is_none() || place.after.is_none() {
        return of_kind(place, if kinds.0 == 0 { kinds.1 } else { kinds.0 });
    }
    let (before, after) = (of_kind(&place.going(), kinds.0), of_kind(&place.coming(), kinds.1));
    plain(Act::Changes, Kind::Other(Box::new(before), Box::new(after)))
}

fn kind_of(value: Option<&Json>) -> u8 {
    match value {
        None | Some(Json::Null) => 0,
        Some(Json::Bool(_)) => 1,
        Some(Json::Number(_)) => 2,
        Some(Json::String(_)) => 3,
        Some(Json::Array(_)) => 4,
        Some(Json::Object(_)) => 5,
    }
}

fn of_kind(place: &Place<'_>, kind: u8) -> Diff {
    let (act, kind) = match kind {
        5 => {
            let named = |name: &String| (name.clone(), of_any(&place.field(name).if_relevant()));
            let fields: BTreeMap<String, Diff> = place.all_names().into_iter().map(named).collect();
            (together(mapping_act(place), fields.values()), Kind::Object { fields, schema: false })
        }
        4 => {
            let objects = |one: &Json, other: &Json| one.is_object() && other.is_object();
            let places = aligned(place, &|one, other| objects(one, other) || lines_in_common(one, other));
            let elements: Vec<Diff> = places.iter().map(of_any).collect();
            (together(listing_act(place), &elements), Kind::List { elements, context: true })
        }
        text => {
            let act = match (place.before.is_some(), place.after.is_some()) {
                (false, true) => Act::Comes,
                (true, false) => Act::Goes,
                _ if place.before_value() == place.after_value() => Act::Stays,
                _ => Act::Changes,
            };
            (act, primitive(place, text == 3))
        }
    };
    Diff { act, forces: false, kind }
}

fn primitive(place: &Place<'_>, text: bool) -> Kind {
    if text {
        let text = |side: Option<&Json>| side.and_then(Json::as_str).map(str::to_owned);
        return Kind::Text { before: text(place.before), after: text(place.after) };
    }
    let word = |side: Option<&Json>| side.map_or_else(|| "null".to_owned(), Json::to_string);
    Kind::Word { before: word(place.before), after: word(place.after) }
}

/// What becomes of a mapping as such: only what is one counts.
fn mapping_act(place: &Place<'_>) -> Act {
    let is = |side: Option<&Json>| side.is_some_and(Json::is_object);
    Act::of_sides(is(place.before), is(place.after))
}

fn listing_act(place: &Place<'_>) -> Act {
    let is = |side: Option<&Json>| side.is_some_and(Json::is_array);
    Act::of_sides(is(place.before), is(place.after))
}

/// Elements by their places alone.
fn in_order<'a>(place: &Place<'a>) -> Vec<Place<'a>> {
    let (before, after) = place.elements();
    (0..before.len().max(after.len())).map(|at| place.element(Some(at), Some(at)).if_relevant()).collect()
}

/// Elements beside those that they were before. `alike`: two that differ are told as one that changes.
fn aligned<'a>(place: &Place<'a>, alike: &dyn Fn(&Json, &Json) -> bool) -> Vec<Place<'a>> {
    let (before, after) = place.elements();
    pairs(before, after, alike).into_iter().map(|(was, is)| place.element(was, is).wholly_relevant()).collect()
}

/// Two texts of several lines, of which one is in both.
fn lines_in_common(one: &Json, other: &Json) -> bool {
    let (Some(one), Some(other)) = (one.as_str(), other.as_str()) else { return false };
    (one.contains('\n') || other.contains('\n')) && one.split('\n').any(|line| other.split('\n').any(|it| it == line))
}

/// Elements of a set: those that stay or go, then those that come.
fn as_set<'a>(place: &Place<'a>) -> Vec<Place<'a>> {
    let (before, after) = place.elements();
    let mut found = vec![false; after.len()];
    let mut places = Vec::new();
    for was in 0..before.len() {
        let same = |is: &usize| {
            let element = place.element(Some(was), Some(*is));
            let (was_secret, is_secret) = element.secret();
            !found[*is] && element.before == element.after && was_secret == is_secret && !element.is_unknown()
        };
        let is = (0..after.len()).find(same);
        if let Some(is) = is {
            found[is] = true;
        }
        places.push(place.element(Some(was), is));
    }
    let new = (0..after.len()).filter(|is| !found[*is]);
    places.extend(new.map(|is| place.element(None, Some(is))));
    places.into_iter().map(Place::wholly_relevant).collect()
}
