use std::collections::BTreeMap;

use crate::Type;
use crate::convert::{Safety, is_possible};

/// What several types have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unified {
    /// Every one of them can become this type.
    Common(Type),
    /// Some of them are not known yet, so nothing can be said: the value is unknown, too.
    Undecided,
}

impl Unified {
    pub fn into_type(self) -> Type {
        match self {
            Unified::Common(ty) => ty,
            Unified::Undecided => Type::Dynamic,
        }
    }
}

/// The most general type that all of the types can become; `None` if there is none.
pub fn unify(types: &[Type], safety: Safety) -> Option<Unified> {
    let first = types.first()?;
    if types.iter().all(|ty| ty == first) && !matches!(first, Type::Object { .. } | Type::Tuple(_)) {
        return Some(Unified::Common(first.clone()));
    }
    let count = |test: fn(&Type) -> bool| types.iter().filter(|ty| test(ty)).count();
    let maps = count(|ty| matches!(ty, Type::Map(_)));
    let lists = count(|ty| matches!(ty, Type::List(_)));
    let sets = count(|ty| matches!(ty, Type::Set(_)));
    let objects = count(|ty| matches!(ty, Type::Object { .. }));
    let tuples = count(|ty| matches!(ty, Type::Tuple(_)));
    let dynamics = count(|ty| matches!(ty, Type::Dynamic));
    let all = types.len();
    for (kind, wrap) in [(maps, Type::map as fn(Type) -> Type), (lists, Type::list), (sets, Type::set)] {
        if kind > 0 && kind + dynamics == all {
            return if dynamics > 0 { Some(Unified::Undecided) } else { unify_collections(types, wrap, safety) };
        }
    }
    if maps > 0 && maps + objects + dynamics == all {
        if let Some(found) = unify_mixed(types, |ty| matches!(ty, Type::Object { .. }), unify_to_map, safety)
            && matches!(found, Unified::Common(Type::Map(_)))
        {
            return Some(found);
        }
    } else if lists > 0 && lists + tuples + dynamics == all {
        if let Some(found) = unify_mixed(types, |ty| matches!(ty, Type::Tuple(_)), unify_to_list, safety)
            && matches!(found, Unified::Common(Type::List(_)))
        {
            return Some(found);
        }
    } else if objects > 0 && objects + dynamics == all {
        return if dynamics > 0 { Some(Unified::Undecided) } else { unify_objects(types, safety) };
    } else if tuples > 0 && tuples + dynamics == all {
        return if dynamics > 0 { Some(Unified::Undecided) } else { unify_tuples(types, safety) };
    } else if objects > 0 && tuples > 0 {
        return None;
    }
    by_preference(types)
        .into_iter()
        .map(|index| &types[index])
        .find(|wanted| types.iter().all(|ty| is_possible(ty, wanted, safety)))
        .map(|ty| Unified::Common(ty.clone()))
}

fn common_if_possible(types: &[Type], wanted: Type, safety: Safety) -> Option<Unified> {
    types.iter().all(|ty| is_possible(ty, &wanted, safety)).then_some(Unified::Common(wanted))
}

fn unify_collections(types: &[Type], wrap: fn(Type) -> Type, safety: Safety) -> Option<Unified> {
    let elements: Vec<Type> = types.iter().filter_map(Type::element).cloned().collect();
    common_if_possible(types, wrap(unify(&elements, safety)?.into_type()), safety)
}

/// Structures among collections become collections first.
fn unify_mixed(
    types: &[Type],
    is_structure: fn(&Type) -> bool,
    to_collection: fn(&[Type], Safety) -> Option<Unified>,
    safety: Safety,
) -> Option<Unified> {
    let structures: Vec<Type> = types.iter().filter(|ty| is_structure(ty)).cloned().collect();
    let collection = to_collection(&structures, safety)?.into_type();
    let types: Vec<Type> =
        types.iter().map(|ty| if is_structure(ty) { collection.clone() } else { ty.clone() }).collect();
    unify(&types, safety)
}

fn attributes_of(ty: &Type) -> Option<&BTreeMap<String, Type>> {
    match ty {
        Type::Object { attributes, .. } => Some(attributes),
        _ => None,
    }
}

fn unify_objects(types: &[Type], safety: Safety) -> Option<Unified> {
    let all: Vec<&BTreeMap<String, Type>> = types.iter().filter_map(attributes_of).collect();
    if !all.windows(2).all(|pair| pair[0].keys().eq(pair[1].keys())) {
        return unify_to_map(types, safety);
    }
    let mut common = Vec::new();
    for name in all[0].keys() {
        let across: Vec<Type> = all.iter().map(|attributes| attributes[name].clone()).collect();
        common.push((name.clone(), unify(&across, safety)?.into_type()));
    }
    common_if_possible(types, Type::object(common), safety).or_else(|| unify_to_map(types, safety))
}

fn unify_to_map(types: &[Type], safety: Safety) -> Option<Unified> {
    let parts: Vec<Type> =
        types.iter().filter_map(attributes_of).flat_map(|attributes| attributes.values().cloned()).collect();
    common_if_possible(types, Type::map(unify(&parts, safety)?.into_type()), safety)
}

fn elements_of(ty: &Type) -> Option<&[Type]> {
    match ty {
        Type::Tuple(elements) => Some(elements),
        _ => None,
    }
}

fn unify_tuples(types: &[Type], safety: Safety) -> Option<Unified> {
    let all: Vec<&[Type]> = types.iter().filter_map(elements_of).collect();
    if !all.windows(2).all(|pair| pair[0].len() == pair[1].len()) {
        return unify_to_list(types, safety);
    }
    let mut common = Vec::new();
    for index in 0..all[0].len() {
        let across: Vec<Type> = all.iter().map(|elements| elements[index].clone()).collect();
        common.push(unify(&across, safety)?.into_type());
    }
    common_if_possible(types, Type::tuple(common), safety).or_else(|| unify_to_list(types, safety))
}

fn unify_to_list(types: &[Type], safety: Safety) -> Option<Unified> {
    let parts: Vec<Type> = types.iter().filter_map(elements_of).flatten().cloned().collect();
    common_if_possible(types, Type::list(unify(&parts, safety)?.into_type()), safety)
}

/// Indices of the types, those to which the others more likely convert first. A preference is not a total order, so
/// this is a topological sort that otherwise keeps the given order.
fn by_preference(types: &[Type]) -> Vec<usize> {
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); types.len()];
    let mut waiting = vec![0usize; types.len()];
    for left in 0..types.len() {
        for right in left + 1..types.len() {
            let preference = preference(&types[left], &types[right]);
            if preference < 0 {
                after[left].push(right);
                waiting[right] += 1;
            } else if preference > 0 {
                after[right].push(left);
                waiting[left] += 1;
            }
        }
    }
    let mut order: Vec<usize> = (0..types.len()).filter(|index| waiting[*index] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for follower in std::mem::take(&mut after[order[next]]) {
            waiting[follower] -= 1;
            if waiting[follower] == 0 {
                order.push(follower);
            }
        }
        next += 1;
    }
    order
}

/// Below zero: the left type is more general. Zero: neither.
fn preference(left: &Type, right: &Type) -> i32 {
    match (left, right) {
        (Type::Dynamic, Type::Dynamic) => 0,
        (Type::Dynamic, _) => 1,
        (_, Type::Dynamic) => -1,
        (Type::String, Type::String) => 0,
        (Type::String, Type::Bool | Type::Number) => -1,
        (Type::Bool | Type::Number, Type::String) => 1,
        (Type::List(left), Type::List(right))
        | (Type::Set(left), Type::Set(right))
        | (Type::Map(left), Type::Map(right)) => preference(left, right),
        (Type::Tuple(_) | Type::List(_), Type::Set(_)) => -1,
        (Type::Set(_), Type::Tuple(_) | Type::List(_)) => 1,
        (Type::List(_), Type::Tuple(_)) | (Type::Map(_), Type::Object { .. }) => -1,
        (Type::Tuple(_), Type::List(_)) | (Type::Object { .. }, Type::Map(_)) => 1,
        (Type::Object { attributes: left, .. }, Type::Object { attributes: right, .. }) => {
            if !left.keys().eq(right.keys()) {
                return 0;
            }
            overall(left.values().zip(right.values()))
        }
        (Type::Tuple(left), Type::Tuple(right)) if left.len() == right.len() => overall(left.iter().zip(right.iter())),
        _ => 0,
    }
}

fn overall<'a>(pairs: impl Iterator<Item = (&'a Type, &'a Type)>) -> i32 {
    let (mut left_more, mut right_more) = (false, false);
    for (left, right) in pairs {
        let preference = preference(left, right);
        left_more |= preference < 0;
        right_more |= preference > 0;
    }
    i32::from(right_more && !left_more) - i32::from(left_more && !right_more)
}
