//! How a change is written, line by line.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::diff::{Act, Blocks, Diff, Kind, of_any};
use super::ink::Ink;
use super::place::{Paths, Place};
use super::sequence::pairs;
use super::words::{attribute_name, quoted};

/// How much of it is wanted.
#[derive(Clone, Copy, Default)]
pub struct Look {
    /// What goes is not said to become null.
    pub without_null: bool,
    /// Everything, also what stays as it is.
    pub all: bool,
    /// Without symbols and without the space for them.
    pub bare: bool,
    /// It forces a replacement, whatever it says of itself.
    pub forced: bool,
    pub ink: Ink,
}

impl Look {
    /// As a state is written: all of it, and nothing changes.
    pub const BARE: Look = Look { without_null: false, all: true, bare: true, forced: false, ink: Ink::Plain };

    pub fn of(ink: Ink) -> Look {
        Look { ink, ..Look::default() }
    }

    /// For what is inside: what forces a replacement says so itself.
    fn inside(self) -> Look {
        Look { forced: false, ..self }
    }

    fn symbol(self, act: Act) -> &'static str {
        match act {
            _ if self.bare => "",
            Act::Stays => "    ",
            Act::Comes => self.ink.choose("  + ", "  \u{1b}[32m+\u{1b}[0m\u{1b}[0m "),
            Act::Goes => self.ink.choose("  - ", "  \u{1b}[31m-\u{1b}[0m\u{1b}[0m "),
            Act::Changes => self.ink.choose("  ~ ", "  \u{1b}[33m~\u{1b}[0m\u{1b}[0m "),
        }
    }

    fn null(self, act: Act) -> &'static str {
        match act == Act::Goes && !self.without_null {
            true => self.ink.choose(" -> null", " \u{1b}[90m-> null\u{1b}[0m\u{1b}[0m"),
            false => "",
        }
    }

    fn forces(self, forces: bool) -> &'static str {
        match forces || self.forced {
            true => self.ink.choose(" # forces replacement", " \u{1b}[31m# forces replacement\u{1b}[0m\u{1b}[0m"),
            false => "",
        }
    }

    /// Between what was and what is.
    fn arrow(self) -> &'static str {
        self.ink.choose("->", "\u{1b}[33m->\u{1b}[0m\u{1b}[0m")
    }

    fn nothing(self) -> &'static str {
        self.ink.choose("null", "\u{1b}[90mnull\u{1b}[0m\u{1b}[0m")
    }

    /// A number, a bool or null.
    fn word(self, word: &str) -> &str {
        if word == "null" { self.nothing() } else { word }
    }

    /// How many have been left out because nothing changes.
    fn hidden(self, what: &str, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        self.ink.say(&format!("[dark_gray]# ({count} unchanged {what}{plural} hidden)[reset]"))
    }
}

fn margin(depth: usize) -> String {
    "    ".repeat(depth)
}

/// Names that are always shown, so that one knows what it is about.
fn important(name: &str) -> bool {
    matches!(name, "id" | "name" | "tags")
}

impl Diff {
    /// `depth`: how far in the line stands that this begins on.
    pub fn written(&self, depth: usize, look: Look) -> String {
        match &self.kind {
            Kind::Text { before, after } => self.text(before.as_deref(), after.as_deref(), depth, look),
            Kind::Word { before, after } => {
                let (forces, before, after) = (look.forces(self.forces), look.word(before), look.word(after));
                match self.act {
                    Act::Comes => format!("{after}{forces}"),
                    Act::Goes => format!("{before}{}{forces}", look.null(self.act)),
                    Act::Stays => format!("{before}{forces}"),
                    Act::Changes => format!("{before} {} {after}{forces}", look.arrow()),
                }
            }
            Kind::Object { fields, schema } => self.object(fields, *schema, depth, look),
            Kind::Map { elements, schema } => self.map(elements, *schema, depth, look),
            Kind::List { elements, context } => self.list(elements, *context, depth, look),
            Kind::Set { elements, schema } => self.set(elements, *schema, depth, look),
            Kind::Block { attributes, blocks } => self.block(attributes, blocks, depth, look),
            Kind::Unknown(before) => {
                let forces = look.forces(self.forces);
                match before {
                    Some(before) if self.act != Act::Comes => {
                        let before = before.written(depth, Look { without_null: true, ..look });
                        format!("{before} -> (known after apply){forces}")
                    }
                    _ => format!("(known after apply){forces}"),
                }
            }
            Kind::Secret { block: true, .. } => {
                let line = format!("{}{}", margin(depth), look.symbol(Act::Stays));
                format!(
                    "{{{}\n{line}  # At least one attribute in this block is (or was) sensitive,\n{line}  # so its contents \
                     will not be displayed.\n{line}}}",
                    look.forces(self.forces)
                )
            }
            Kind::Secret { .. } => {
                format!("(sensitive value){}{}", look.null(self.act), look.forces(self.forces))
            }
            Kind::WriteOnly => {
                format!("(write-only attribute){}{}", look.forces(self.forces), look.null(self.act))
            }
            Kind::Other(before, after) => {
                let look = Look { without_null: true, ..look };
                format!("{} {} {}", before.written(depth, look), look.arrow(), after.written(depth, look))
            }
        }
    }

    /// What is said above it, where it becomes a secret or ceases to be one.
    fn warning(&self, depth: usize, look: Look, out: &mut String) {
        let Kind::Secret { inner, was, is, block } = &self.kind else { return };
        if was == is || matches!(inner.act, Act::Comes | Act::Goes) {
            return;
        }
        let margin = margin(depth);
        let what = if *block { "block" } else { "attribute value" };
        let text = if *was {
            format!(
                "{margin}  # [yellow]Warning[reset]: this {what} will no longer be marked as sensitive\n{margin}  # after applying this change."
            )
        } else {
            format!(
                "{margin}  # [yellow]Warning[reset]: this {what} will be marked as sensitive and will not\n{margin}  # display in UI output \
                 after applying this change."
            )
        };
        out.push_str(&look.ink.say(&text));
        out.push_str(if inner.act == Act::Stays && !block { " The value is unchanged.\n" } else { "\n" });
    }

    /// One line, or more, with what stands before and after it.
    fn line(&self, label: &str, end: &str, depth: usize, look: Look, out: &mut String) {
        self.warning(depth, look, out);
        let (margin, symbol) = (margin(depth), look.symbol(self.act));
        let _ = writeln!(out, "{margin}{symbol}{label}{}{end}", self.written(depth, look));
    }

    fn object(&self, fields: &BTreeMap<String, Diff>, schema: bool, depth: usize, look: Look) -> String {
        let (forces, null) = (look.forces(self.forces), look.null(self.act));
        if fields.is_empty() {
            return format!("{{}}{null}{forces}");
        }
        let inner = Look { without_null: !schema, ..look.inside() };
        let mut out = format!("{{{forces}\n");
        attributes(fields, attribute_name, depth + 1, (look, inner), &mut out);
        let _ = write!(out, "{}{}}}{null}", margin(depth), look.symbol(Act::Stays));
        out
    }

    fn map(&self, elements: &BTreeMap<String, Diff>, schema: bool, depth: usize, look: Look) -> String {
        let (forces, null) = (look.forces(self.forces && !schema), look.null(self.act));
        if elements.is_empty() {
            return format!("{{}}{null}{forces}");
        }
        let inner =
            Look { without_null: self.act == Act::Goes || schema, forced: self.forces && schema, ..look.inside() };
        let width = if schema { 0 } else { elements.keys().map(|key| quoted(key).len()).max().unwrap_or(0) };
        let mut out = format!("{{{forces}\n");
        let mut unchanged = 0;
        for (key, element) in elements {
            if element.act == Act::Stays && !look.all {
                unchanged += 1;
                continue;
            }
            let comma = if matches!(element.kind, Kind::Object { .. }) { "," } else { "" };
            element.line(&format!("{:width$} = ", quoted(key)), comma, depth + 1, inner, &mut out);
        }
        closed(&mut out, ("element", unchanged), '}', null, depth, look);
        out
    }

    fn list(&self, elements: &[Diff], context: bool, depth: usize, look: Look) -> String {
        let (forces, null) = (look.forces(self.forces), look.null(self.act));
        if elements.is_empty() {
            return format!("[]{null}{forces}");
        }
        let inner = Look { without_null: true, ..look.inside() };
        let beside = Look { all: true, ..look.inside() };
        let mut out = format!("[{forces}\n");
        // Those since the last change; and whether that was the element just before.
        let (mut unchanged, mut changed) = (Vec::new(), false);
        for element in elements {
            let stays = element.act == Act::Stays;
            if stays && !changed && !look.all {
                unchanged.push(element);
                continue;
            }
            changed = false;
            if context {
                if unchanged.len() > 1 {
                    let count = inner.hidden("element", unchanged.len() - 1);
                    let _ = writeln!(out, "{}{}{count}", margin(depth + 1), inner.symbol(Act::Stays));
                }
                if let Some(last) = unchanged.last() {
                    let (margin, symbol) = (margin(depth + 1), beside.symbol(last.act));
                    let _ = writeln!(out, "{margin}{symbol}{},", last.written(depth + 1, beside));
                }
                unchanged.clear();
                changed = !stays;
            }
            element.line("", ",", depth + 1, if context && stays { beside } else { inner }, &mut out);
        }
        closed(&mut out, ("element", unchanged.len()), ']', null, depth, look);
        out
    }

    fn set(&self, elements: &[Diff], schema: bool, depth: usize, look: Look) -> String {
        let (forces, null) = (look.forces(self.forces && !schema), look.null(self.act));
        if elements.is_empty() {
            return format!("[]{null}{forces}");
        }
        let inner = Look { without_null: true, forced: self.forces && schema, ..look.inside() };
        let mut out = format!("[{forces}\n");
        let shown = |element: &&Diff| element.act != Act::Stays || look.all;
        elements.iter().filter(shown).for_each(|element| element.line("", ",", depth + 1, inner, &mut out));
        let unchanged = elements.iter().filter(|element| !shown(element)).count();
        closed(&mut out, ("element", unchanged), ']', null, depth, look);
        out
    }

    fn block(
        &self,
        fields: &BTreeMap<String, Diff>,
        blocks: &BTreeMap<String, Blocks>,
        depth: usize,
        look: Look,
    ) -> String {
        let forces = look.forces(self.forces);
        if fields.is_empty() && blocks.is_empty() {
            return format!("{{}}{forces}");
        }
        let mut out = format!("{{{forces}\n");
        attributes(fields, attribute_name, depth + 1, (look, look.inside()), &mut out);
        let mut unchanged = 0;
        for (name, blocks) in blocks {
            let mut begun = fields.is_empty();
            for (key, block) in &blocks.blocks {
                let secret = match block.act {
                    Act::Comes => blocks.is_secret,
                    Act::Goes => blocks.was_secret,
                    Act::Stays | Act::Changes => blocks.is_secret || blocks.was_secret,
                };
                let act = if block.act == Act::Stays && blocks.was_secret != blocks.is_secret && secret {
                    Act::Changes
                } else {
                    block.act
                };
                if act == Act::Stays && !look.all {
                    unchanged += 1;
                    continue;
                }
                if !begun {
                    out.push('\n');
                    begun = true;
                }
                let key = key.as_ref().map(|key| format!(" {}", quoted(key))).unwrap_or_default();
                let label = format!("{}{key} ", attribute_name(name));
                let look = Look { forced: blocks.forces, ..look };
                if secret {
                    block.hidden_block(&label, act, blocks, depth + 1, look, &mut out);
                } else {
                    block.line(&label, "", depth + 1, look, &mut out);
                }
            }
        }
        if unchanged > 0 {
            let _ =
                writeln!(out, "\n{}{}{}", margin(depth + 1), look.symbol(Act::Stays), look.hidden("block", unchanged));
        }
        let _ = write!(out, "{}{}}}", margin(depth), look.symbol(Act::Stays));
        out
    }

    /// A block of which nothing may be seen because all of its name are secret.
    fn hidden_block(&self, label: &str, act: Act, blocks: &Blocks, depth: usize, look: Look, out: &mut String) {
        let inner = Box::new(Diff { act: self.act, forces: false, kind: Kind::WriteOnly });
        let kind = Kind::Secret { inner, was: blocks.was_secret, is: blocks.is_secret, block: true };
        Diff { act, forces: self.forces, kind }.line(label, "", depth, look, out);
    }

    fn text(&self, before: Option<&str>, after: Option<&str>, depth: usize, look: Look) -> String {
        let forces = look.forces(self.forces);
        let null = look.null(self.act);
        let simple = |text: Option<&str>| text.map_or_else(|| look.nothing().to_owned(), quoted);
        let lines: Vec<(Act, &str)> = match self.act {
            Act::Comes | Act::Stays | Act::Goes => {
                let text = if self.act == Act::Goes { before } else { after };
                let Some(text) = text else { return format!("{}{forces}", look.nothing()) };
                if let Some(json) = as_json(text) {
                    let side = |there: bool| there.then_some(&json);
                    return self.json(side(self.act != Act::Comes), side(self.act != Act::Goes), depth, look);
                }
                if !text.contains('\n') {
                    return format!("{}{null}{forces}", quoted(text));
                }
                text.trim().split('\n').map(|line| (Act::Stays, line)).collect()
            }
            Act::Changes => {
                let multiline = |text: Option<&str>| text.is_some_and(|text| text.contains('\n'));
                match (before.and_then(as_json), after.and_then(as_json)) {
                    (Some(before), Some(after)) => return self.json(Some(&before), Some(&after), depth, look),
                    (None, None) => {}
                    _ => {
                        let one = |act, before: Option<&str>, after: Option<&str>| {
                            let kind = Kind::Text { before: before.map(Into::into), after: after.map(Into::into) };
                            Box::new(Diff { act, forces: false, kind })
                        };
                        let kind = Kind::Other(one(Act::Goes, before, None), one(Act::Comes, None, after));
                        return Diff { act: self.act, forces: self.forces, kind }.written(depth, look);
                    }
                }
                if !multiline(before) && !multiline(after) {
                    return format!("{} {} {}{forces}", simple(before), look.arrow(), simple(after));
                }
                let lines = |text: Option<&'_ str>| -> Vec<String> {
                    let text = match text {
                        Some(text) if text.contains('\n') => text.trim(),
                        Some(text) => text,
                        None => look.nothing(),
                    };
                    text.split('\n').map(str::to_owned).collect()
                };
                return self.heredoc(&changed_lines(&lines(before), &lines(after)), depth, look);
            }
        };
        let lines: Vec<(Act, String)> = lines.into_iter().map(|(act, line)| (act, line.to_owned())).collect();
        self.heredoc(&lines, depth, look)
    }

    fn heredoc(&self, lines: &[(Act, String)], depth: usize, look: Look) -> String {
        let mut out = format!("<<-EOT{}\n", look.forces(self.forces));
        for (act, line) in lines {
            let _ = writeln!(out, "{}{}{line}", margin(depth + 1), look.symbol(*act));
        }
        let _ = write!(out, "{}{}EOT{}", margin(depth), look.symbol(Act::Stays), look.null(self.act));
        out
    }

    /// A text that is JSON is taken apart.
    fn json(&self, before: Option<&Json>, after: Option<&Json>, depth: usize, look: Look) -> String {
        let place = Place {
            before,
            after,
            unknown: None,
            was_secret: None,
            is_secret: None,
            forcing: Paths::nowhere(),
            relevant: Paths::Everywhere,
        };
        let diff = of_any(&place);
        let only_space = diff.act == Act::Stays && self.act == Act::Changes;
        let inner = Look { without_null: true, all: look.all || only_space, ..look.inside() };
        let (space, forces) = match (only_space, self.forces) {
            (true, true) => (" # whitespace changes force replacement", ""),
            (true, false) => (" # whitespace changes", ""),
            (false, forces) => ("", look.forces(forces)),
        };
        let act = if self.act == Act::Changes && !only_space { Act::Changes } else { Act::Stays };
        let text = diff.written(depth + 1, inner);
        if !text.contains('\n') {
            return format!("jsonencode({text}){space}{forces}");
        }
        format!(
            "jsonencode({space}\n{}{}{text}{forces}\n{}{}){}",
            margin(depth + 1),
            look.symbol(act),
            margin(depth),
            look.symbol(Act::Stays),
            look.null(self.act)
        )
    }
}

/// The attributes of a block or an object, in one column. `looks`: of the whole and of what is inside.
fn attributes(
    fields: &BTreeMap<String, Diff>,
    written: fn(&str) -> String,
    depth: usize,
    looks: (Look, Look),
    out: &mut String,
) {
    let (look, inner) = looks;
    let width = fields.keys().map(|name| written(name).len()).max().unwrap_or(0);
    let mut unchanged = 0;
    for (name, field) in fields {
        let inner = Look { all: inner.all || important(name), ..inner };
        if field.act == Act::Stays && !look.all && !important(name) {
            unchanged += 1;
            continue;
        }
        field.line(&format!("{:width$} = ", written(name)), "", depth, inner, out);
    }
    if unchanged > 0 {
        let _ = writeln!(out, "{}{}{}", margin(depth), look.symbol(Act::Stays), look.hidden("attribute", unchanged));
    }
}

/// The last lines of a collection: what is left out of it, and its end.
fn closed(out: &mut String, unchanged: (&str, usize), end: char, null: &str, depth: usize, look: Look) {
    let stays = look.symbol(Act::Stays);
    if unchanged.1 > 0 {
        let _ = writeln!(out, "{}{stays}{}", margin(depth + 1), look.hidden(unchanged.0, unchanged.1));
    }
    let _ = write!(out, "{}{stays}{end}{null}", margin(depth));
}

fn changed_lines(before: &[String], after: &[String]) -> Vec<(Act, String)> {
    let line = |(was, is): (Option<usize>, Option<usize>)| match (was, is) {
        (Some(was), Some(_)) => (Act::Stays, before[was].clone()),
        (Some(was), None) => (Act::Goes, before[was].clone()),
        (None, is) => (Act::Comes, is.map(|is| after[is].clone()).unwrap_or_default()),
    };
    pairs(before, after, &|_, _| false).into_iter().map(line).collect()
}

/// What a text says that begins with an object or a list in JSON.
fn as_json(text: &str) -> Option<Json> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}
