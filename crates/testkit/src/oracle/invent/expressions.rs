//! Expressions made up at random, of a kind that is asked for.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Truth,
    /// A list of texts.
    Texts,
    /// A map of texts.
    Map,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Text, Kind::Number, Kind::Truth, Kind::Texts, Kind::Map];

    pub fn constraint(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Number => "number",
            Kind::Truth => "bool",
            Kind::Texts => "list(string)",
            Kind::Map => "map(string)",
        }
    }

    pub fn empty(self) -> &'static str {
        match self {
            Kind::Text => "\"none\"",
            Kind::Number => "0",
            Kind::Truth => "false",
            Kind::Texts => "[]",
            Kind::Map => "{}",
        }
    }
}

/// What can be referred to at one place, by kind.
pub type Names = Vec<(Kind, String)>;

const WORDS: &[&str] =
    &["a", "b", "c", "north", "south", "x y", "", "Äpfel", "10", "true", "line\\nother", "%{x}", "a$b"];
pub const KEYS: &[&str] = &["a", "b", "c", "d"];

/// Files that expressions may read, as a story writes them.
pub const FILES: &str = "--- files/note.txt\nA note, ${not} a template.\n--- files/page.tftpl\n\
                         # ${name}\n%{ for one in list ~}\n- ${one}\n%{ endfor ~}\n%{ if length(list) > 1 }many%{ else }few%{ endif }\n";

/// As a literal. Templates begin with two characters that have to be doubled to mean themselves.
pub fn literal(rng: &mut StdRng, kind: Kind) -> String {
    match kind {
        Kind::Text => format!("\"{}\"", pick(rng, WORDS).replace("%{", "%%{").replace("${", "$${")),
        Kind::Number => pick(rng, &["0", "1", "2", "3", "-4", "2.5", "1e3", "100000000000000000000"]).to_owned(),
        Kind::Truth => pick(rng, &["true", "false"]).to_owned(),
        Kind::Texts => {
            let count = rng.random_range(0..4);
            let texts: Vec<String> = (0..count).map(|_| literal(rng, Kind::Text)).collect();
            format!("[{}]", texts.join(", "))
        }
        Kind::Map => {
            let keys: Vec<&&str> = KEYS.iter().filter(|_| rng.random_bool(0.5)).collect();
            let entries: Vec<String> = keys.iter().map(|key| format!("{key} = {}", literal(rng, Kind::Text))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

pub fn pick<'a>(rng: &mut StdRng, from: &[&'a str]) -> &'a str {
    from.choose(rng).copied().unwrap_or_default()
}

/// An expression of this kind; `depth` is how much it may still be nested.
pub fn expression(rng: &mut StdRng, kind: Kind, names: &Names, depth: u32) -> String {
    let fitting: Vec<&String> = names.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name).collect();
    if let Some(name) = fitting.choose(rng)
        && rng.random_bool(if depth == 0 { 0.7 } else { 0.35 })
    {
        return (*name).clone();
    }
    if depth == 0 || rng.random_bool(0.15) {
        return literal(rng, kind);
    }
    let mut maker = Maker { rng, names, depth: depth - 1 };
    match kind {
        Kind::Text => maker.text(),
        Kind::Number => maker.number(),
        Kind::Truth => maker.truth(),
        Kind::Texts => maker.texts(),
        Kind::Map => maker.map(),
    }
}

/// As an argument is written: now and then over several lines.
pub fn written(rng: &mut StdRng, kind: Kind, names: &Names) -> String {
    if kind != Kind::Text || rng.random_bool(0.8) {
        return expression(rng, kind, names, 3);
    }
    let (one, other) = (expression(rng, Kind::Text, names, 1), expression(rng, Kind::Texts, names, 1));
    let (mark, end) = *[("<<EOT", "EOT"), ("<<-EOT", "    EOT")].choose(rng).expect("there are two");
    let list =
        pick(rng, &["%{ for t in LIST ~}\n      - ${t}\n    %{ endfor ~}", "%{ for t in LIST }${t},%{ endfor }"]);
    format!("{mark}\n      first ${{{one}}}\n\n    {}\n      \"last\" \\n $${{x}}\n{end}", list.replace("LIST", &other))
}

struct Maker<'a> {
    rng: &'a mut StdRng,
    names: &'a Names,
    depth: u32,
}

impl Maker<'_> {
    fn of(&mut self, kind: Kind) -> String {
        expression(self.rng, kind, self.names, self.depth)
    }

    fn any(&mut self) -> String {
        let kind = *Kind::ALL.choose(self.rng).expect("there are kinds");
        self.of(kind)
    }

    /// With one more name, for the inside of a `for`.
    fn inside(&mut self, kind: Kind, more: &[(Kind, &str)]) -> String {
        let mut names = self.names.clone();
        // Several times, so that it is referred to more often than not.
        for _ in 0..3 {
            names.extend(more.iter().map(|(kind, name)| (*kind, (*name).to_owned())));
        }
        expression(self.rng, kind, &names, self.depth)
    }

    fn either(&mut self, kind: Kind) -> String {
        format!("({} ? {} : {})", self.of(Kind::Truth), self.of(kind), self.of(kind))
    }

    fn text(&mut self) -> String {
        match self.rng.random_range(0..29) {
            0..4 => format!("\"{}-${{{}}}\"", pick(self.rng, &["p", "q", "%"]), self.of(Kind::Text)),
            4 => format!("\"${{{}}}${{{}}}\"", self.of(Kind::Number), self.of(Kind::Text)),
            5 => format!("upper({})", self.of(Kind::Text)),
            6 => format!("join(\"-\", {})", self.of(Kind::Texts)),
            7 => self.either(Kind::Text),
            8 => format!("lookup({}, {}, {})", self.of(Kind::Map), self.key(), self.of(Kind::Text)),
            9 => format!("format(\"%s/%v\", {}, {})", self.of(Kind::Text), self.any()),
            10 => format!("try({}[{}], {})", self.of(Kind::Map), self.key(), self.of(Kind::Text)),
            11 => format!("coalesce({}, \"none\")", self.of(Kind::Text)),
            12 => format!("replace({}, \"a\", {})", self.of(Kind::Text), self.of(Kind::Text)),
            13 => format!("jsonencode({})", self.any()),
            14 => format!("tostring({})", self.of(Kind::Number)),
            15 => format!("substr({}, 0, 3)", self.of(Kind::Text)),
            16 => format!("sha1({})", self.of(Kind::Text)),
            17 => format!("trimspace({})", self.of(Kind::Text)),
            18 => {
                format!("\"%{{ if {} }}${{{}}}%{{ else }}no%{{ endif }}\"", self.of(Kind::Truth), self.of(Kind::Text))
            }
            19 => {
                let inner = self.inside(Kind::Text, &[(Kind::Text, "t")]);
                format!("\"%{{ for t in {} }}${{{inner}}};%{{ endfor }}\"", self.of(Kind::Texts))
            }
            20 => format!("element(concat({}, [\"z\"]), {})", self.of(Kind::Texts), pick(self.rng, &["0", "1", "5"])),
            21 => "file(\"${path.root}/files/note.txt\")".to_owned(),
            22 | 23 => {
                let (name, list) = (self.of(Kind::Text), self.of(Kind::Texts));
                format!("templatefile(\"${{path.root}}/files/page.tftpl\", {{ name = {name}, list = {list} }})")
            }
            24 => format!("jsonencode(jsondecode(jsonencode({})))", self.any()),
            25 => format!("base64encode({})", self.of(Kind::Text)),
            26 => format!("one(slice(concat({}, [\"z\"]), 0, 1))", self.of(Kind::Texts)),
            27 => format!("format(\"%03d|%-5s|\", {}, {})", self.of(Kind::Number), self.of(Kind::Text)),
            _ => format!("yamlencode({})", self.any()),
        }
    }

    fn key(&mut self) -> String {
        format!("\"{}\"", pick(self.rng, KEYS))
    }

    fn number(&mut self) -> String {
        match self.rng.random_range(0..10) {
            0 | 1 => format!("length({})", self.of(Kind::Texts)),
            2 => format!("length({})", self.of(Kind::Map)),
            3 => format!("({} + {})", self.of(Kind::Number), self.of(Kind::Number)),
            4 => format!("({} * {})", self.of(Kind::Number), self.of(Kind::Number)),
            5 => format!("max({}, {})", self.of(Kind::Number), self.of(Kind::Number)),
            6 => self.either(Kind::Number),
            7 => format!("({} % 7)", self.of(Kind::Number)),
            8 => format!("floor({})", self.of(Kind::Number)),
            _ => format!("try(tonumber({}), 9)", self.of(Kind::Text)),
        }
    }

    fn truth(&mut self) -> String {
        match self.rng.random_range(0..10) {
            0 => format!("({} > {})", self.of(Kind::Number), self.of(Kind::Number)),
            1 | 2 => format!("({} == {})", self.of(Kind::Text), self.of(Kind::Text)),
            // Not of maps themselves: with something unknown in them it is left to chance what OpenTofu finds first.
            3 => format!("(jsonencode({}) != {})", self.of(Kind::Map), self.of(Kind::Text)),
            4 => format!("contains({}, {})", self.of(Kind::Texts), self.of(Kind::Text)),
            5 => format!("!{}", self.of(Kind::Truth)),
            6 => format!("({} && {})", self.of(Kind::Truth), self.of(Kind::Truth)),
            7 => format!("({} || {})", self.of(Kind::Truth), self.of(Kind::Truth)),
            8 => format!("can({}[{}])", self.of(Kind::Map), self.key()),
            _ => format!("({} == null)", self.of(Kind::Text)),
        }
    }

    fn texts(&mut self) -> String {
        match self.rng.random_range(0..20) {
            0 | 1 => format!("[{}, {}]", self.of(Kind::Text), self.of(Kind::Text)),
            2 => format!("concat({}, {})", self.of(Kind::Texts), self.of(Kind::Texts)),
            3 => {
                let inner = self.inside(Kind::Text, &[(Kind::Text, "x")]);
                format!("[for x in {} : {inner}]", self.of(Kind::Texts))
            }
            4 => {
                let inner = self.inside(Kind::Text, &[(Kind::Text, "v"), (Kind::Number, "i")]);
                format!("[for i, v in {} : {inner} if i < 2]", self.of(Kind::Texts))
            }
            5 => format!("keys({})", self.of(Kind::Map)),
            6 => format!("values({})", self.of(Kind::Map)),
            7 => format!("distinct({})", self.of(Kind::Texts)),
            8 => format!("sort({})", self.of(Kind::Texts)),
            9 => format!("compact({})", self.of(Kind::Texts)),
            10 => format!("split(\"-\", {})", self.of(Kind::Text)),
            11 => format!("tolist(toset({}))", self.of(Kind::Texts)),
            12 => format!("flatten([[{}], {}])", self.of(Kind::Text), self.of(Kind::Texts)),
            13 => format!("formatlist(\"%s-%s\", {}, {})", self.of(Kind::Texts), self.of(Kind::Text)),
            14 => format!("reverse({})", self.of(Kind::Texts)),
            15 => format!("regexall(\"[a-z]+\", {})", self.of(Kind::Text)),
            16 => format!("concat([{}, {}]...)", self.of(Kind::Texts), self.of(Kind::Texts)),
            17 => format!("sort(setunion({}, {}))", self.of(Kind::Texts), self.of(Kind::Texts)),
            18 => "sort(fileset(\"${path.root}/files\", \"*\"))".to_owned(),
            _ => self.either(Kind::Texts),
        }
    }

    fn map(&mut self) -> String {
        match self.rng.random_range(0..10) {
            0 | 1 => format!("{{ a = {}, (\"b\") = {} }}", self.of(Kind::Text), self.of(Kind::Text)),
            2 => format!("merge({}, {})", self.of(Kind::Map), self.of(Kind::Map)),
            3 => {
                let inner = self.inside(Kind::Text, &[(Kind::Text, "k"), (Kind::Text, "v")]);
                format!("{{ for k, v in {} : k => {inner} }}", self.of(Kind::Map))
            }
            4 => {
                let inner = self.inside(Kind::Text, &[(Kind::Text, "x")]);
                format!("{{ for x in toset({}) : \"k${{x}}\" => {inner} }}", self.of(Kind::Texts))
            }
            5 => format!("tomap({{ c = {} }})", self.of(Kind::Text)),
            6 => {
                let condition = self.inside(Kind::Truth, &[(Kind::Text, "k"), (Kind::Text, "v")]);
                format!("{{ for k, v in {} : k => v if {condition} }}", self.of(Kind::Map))
            }
            7 => format!("zipmap(keys({0}), values({0}))", self.of(Kind::Map)),
            8 => {
                let groups = format!("{{ for x in {} : substr(\"k${{x}}\", 0, 2) => x... }}", self.of(Kind::Texts));
                format!("{{ for k, group in {groups} : k => join(\",\", group) }}")
            }
            _ => self.either(Kind::Map),
        }
    }
}
