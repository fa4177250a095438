//! A place in a change: the values on both sides, and what a plan's JSON says about them.

use serde_json::Value as Json;

/// `None` on a side: there is nothing; `null` is something that somebody wrote.
#[derive(Clone)]
pub struct Place<'a> {
    pub before: Option<&'a Json>,
    pub after: Option<&'a Json>,
    pub unknown: Option<&'a Json>,
    pub was_secret: Option<&'a Json>,
    pub is_secret: Option<&'a Json>,
    pub forcing: Paths<'a>,
    pub relevant: Paths<'a>,
}

/// Places that something is said of, from here on.
#[derive(Clone)]
pub enum Paths<'a> {
    Everywhere,
    /// `inherited`: what is said of a place holds for all that is inside of it.
    At {
        paths: Vec<&'a [Json]>,
        inherited: bool,
    },
}

impl<'a> Paths<'a> {
    pub fn nowhere() -> Paths<'a> {
        Paths::At { paths: Vec::new(), inherited: false }
    }

    pub fn of(paths: Option<&'a Json>, inherited: bool) -> Paths<'a> {
        let paths = paths.and_then(Json::as_array).into_iter().flatten();
        Paths::At { paths: paths.filter_map(|path| path.as_array().map(Vec::as_slice)).collect(), inherited }
    }

    /// Whether it is said of this place.
    pub fn here(&self) -> bool {
        match self {
            Paths::Everywhere => true,
            Paths::At { paths, .. } => paths.iter().any(|path| path.is_empty()),
        }
    }

    /// Whether it is said of this place or of something inside of it.
    pub fn within(&self) -> bool {
        match self {
            Paths::Everywhere => true,
            Paths::At { paths, .. } => !paths.is_empty(),
        }
    }

    fn step(&self, matches: impl Fn(&Json) -> bool) -> Paths<'a> {
        let Paths::At { paths, inherited } = self else { return Paths::Everywhere };
        let next = |path: &&'a [Json]| match path.split_first() {
            None => inherited.then_some(*path),
            Some((first, rest)) => matches(first).then_some(rest),
        };
        Paths::At { paths: paths.iter().filter_map(next).collect(), inherited: *inherited }
    }
}

/// A side that has a value: null is none.
fn value(side: Option<&Json>) -> Option<&Json> {
    side.filter(|json| !json.is_null())
}

fn holds(side: Option<&Json>) -> bool {
    side == Some(&Json::Bool(true))
}

impl<'a> Place<'a> {
    /// The whole of a change, as a plan's JSON has it.
    pub fn of_change(change: &'a Json, relevant: Paths<'a>) -> Place<'a> {
        Place {
            before: value(change.get("before")),
            after: value(change.get("after")),
            unknown: change.get("after_unknown"),
            was_secret: change.get("before_sensitive"),
            is_secret: change.get("after_sensitive"),
            forcing: Paths::of(change.get("replace_paths"), false),
            relevant,
        }
    }

    /// Something that stays as it is.
    pub fn unchanged(json: &'a Json, secret: Option<&'a Json>) -> Place<'a> {
        Place {
            before: value(Some(json)),
            after: value(Some(json)),
            unknown: None,
            was_secret: secret,
            is_secret: secret,
            forcing: Paths::nowhere(),
            relevant: Paths::Everywhere,
        }
    }

    pub fn before_value(&self) -> Option<&'a Json> {
        value(self.before)
    }

    pub fn after_value(&self) -> Option<&'a Json> {
        value(self.after)
    }

    pub fn is_empty(&self) -> bool {
        self.before_value().is_none() && self.after_value().is_none()
    }

    pub fn is_unknown(&self) -> bool {
        holds(self.unknown)
    }

    pub fn secret(&self) -> (bool, bool) {
        (holds(self.was_secret), holds(self.is_secret))
    }

    /// The same without a word about secrets.
    pub fn revealed(&self) -> Place<'a> {
        Place { was_secret: None, is_secret: None, ..self.clone() }
    }

    /// Nulls that nobody wrote: those of arguments that are not there.
    pub fn implicit(self) -> Place<'a> {
        Place { before: value(self.before), after: value(self.after), ..self }
    }

    /// What has nothing to do with a plan is as if it had not changed.
    pub fn if_relevant(self) -> Place<'a> {
        if self.relevant.within() {
            return self;
        }
        Place { after: self.before, unknown: None, is_secret: self.was_secret, ..self }
    }

    pub fn going(&self) -> Place<'a> {
        Place { after: None, unknown: None, is_secret: None, ..self.clone() }
    }

    pub fn coming(&self) -> Place<'a> {
        Place { before: None, was_secret: None, ..self.clone() }
    }

    pub fn field(&self, name: &str) -> Place<'a> {
        let get = |side: Option<&'a Json>| side.and_then(Json::as_object).and_then(|fields| fields.get(name));
        let named = |step: &Json| step.as_str() == Some(name);
        Place {
            before: get(self.before),
            after: get(self.after),
            unknown: get(self.unknown),
            was_secret: get(self.was_secret),
            is_secret: get(self.is_secret),
            forcing: self.forcing.step(named),
            relevant: self.relevant.step(named),
        }
    }

    /// An element: where it was and where it is.
    pub fn element(&self, was: Option<usize>, is: Option<usize>) -> Place<'a> {
        let get = |side: Option<&'a Json>, at: Option<usize>| side.and_then(Json::as_array)?.get(at?);
        let index = was.filter(|at| *at < self.elements().0.len()).or(is).unwrap_or_default();
        let at = |step: &Json| match step {
            Json::Number(number) => number.as_u64() == u64::try_from(index).ok(),
            Json::String(text) => text.parse() == Ok(index),
            _ => false,
        };
        Place {
            before: get(self.before, was),
            after: get(self.after, is),
            unknown: get(self.unknown, is),
            was_secret: get(self.was_secret, was),
            is_secret: get(self.is_secret, is),
            forcing: self.forcing.step(at),
            relevant: self.relevant.step(at),
        }
    }

    /// Of a list, all is relevant or nothing.
    pub fn wholly_relevant(self) -> Place<'a> {
        Place { relevant: Paths::Everywhere, ..self }
    }

    pub fn elements(&self) -> (&'a [Json], &'a [Json]) {
        let of = |side: Option<&'a Json>| side.and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        (of(self.before), of(self.after))
    }

    /// The names of all fields that either side has.
    pub fn names(&self) -> Vec<&'a String> {
        sorted([self.before, self.after])
    }

    /// Those too of which only is known that they are not known or secret.
    pub fn all_names(&self) -> Vec<&'a String> {
        sorted([self.before, self.after, self.unknown, self.was_secret, self.is_secret])
    }
}

fn sorted<'a>(sides: impl IntoIterator<Item = Option<&'a Json>>) -> Vec<&'a String> {
    let mut names: Vec<&String> =
        sides.into_iter().flatten().filter_map(Json::as_object).flat_map(serde_json::Map::keys).collect();
    names.sort();
    names.dedup();
    names
}
