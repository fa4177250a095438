//! How an item is written down.

use super::body::{Part, argument, block};
use super::items::{Item, Repetition, Sort};

impl Item {
    pub fn part(&self, is_root: bool) -> Part {
        let mut parts = Vec::new();
        if let Sort::Local(_) = self.sort {
            parts.extend(self.arguments.iter().map(|(_, _, value)| argument(self.name.clone(), value.clone())));
            return block("locals", [], parts);
        }
        if let Sort::Module(_) = self.sort {
            parts.push(argument("source", format!("\"./{}\"", self.folder())));
        }
        let index = match &self.repetition {
            Repetition::None => "",
            Repetition::Count(count) => {
                parts.push(argument("count", count.clone()));
                "-${count.index}"
            }
            Repetition::ForEach(for_each) => {
                parts.push(argument("for_each", for_each.clone()));
                // A text of several lines would be several in what is printed.
                "-${replace(each.key, \"\\n\", \"_\")}"
            }
        };
        parts.extend(self.provider.clone().map(|provider| Part::Word("provider", provider)));
        if !self.passed.is_empty() {
            parts.push(Part::Pairs("providers", self.passed.clone()));
        }
        parts.extend(self.distinguished(is_root, index));
        for (name, _, value) in &self.arguments {
            parts.extend(self.argument(name, value));
        }
        if !self.depends_on.is_empty() {
            parts.push(Part::Words("depends_on", self.depends_on.clone()));
        }
        if !self.lifecycle.is_empty() {
            parts.push(block("lifecycle", [], self.lifecycle.clone()));
        }
        match &self.sort {
            Sort::Echo(_) => block("data", ["probe_echo", &self.name], parts),
            Sort::Module(_) => block("module", [&self.name], parts),
            _ => block("resource", [self.type_name(), &self.name], parts),
        }
    }

    /// Ids are counted by name, and what is said to a provider is told apart by it: no two have the same.
    fn distinguished(&self, is_root: bool, index: &str) -> Option<Part> {
        let place = if is_root { "" } else { "${var.place}-" };
        let name = format!("{place}{}{index}", self.born);
        match self.sort {
            Sort::Data(_) | Sort::Local(_) => None,
            Sort::Echo(_) => {
                let faults = self.arguments.iter().find(|(name, _, _)| name == "faults");
                let faults = faults.map_or(String::new(), |(_, _, words)| format!(" {words}"));
                Some(argument("faults", format!("\"{name}{faults}\"")))
            }
            Sort::Module(_) => Some(argument("place", format!("\"{name}\""))),
            _ => Some(argument("name", format!("\"{name}\""))),
        }
    }

    /// An argument, or the blocks that it stands for.
    fn argument(&self, name: &str, value: &str) -> Option<Part> {
        let dynamic = |kind: &str, for_each: String, mut more: Vec<Part>, content: Vec<Part>| {
            more.insert(0, argument("for_each", for_each));
            more.push(block("content", [], content));
            block("dynamic", [kind], more)
        };
        let each = |inner: &str| format!("[for one in {value} : {{ {inner} }}]");
        Some(match (&self.sort, name) {
            (Sort::Echo(_), "faults") => return None,
            (Sort::Nested, "single") => argument(name, format!("{{ value = {value}, secret = \"s\" }}")),
            (Sort::Nested, "list" | "set") => argument(name, each("value = one")),
            (Sort::Nested, "either") => argument(name, each("value = one, count = length(one)")),
            // One level further down; an object has one `single` only.
            (Sort::Nested, "deep") if self.arguments.iter().any(|(name, _, _)| name == "single") => return None,
            (Sort::Nested, "deep") => argument("single", format!("{{ more = {} }}", each("value = one"))),
            (Sort::Nested, "map") => {
                argument(name, format!("{{ for key, one in {value} : key => {{ value = one }} }}"))
            }
            (Sort::Blocks, "item") => block("item", [], vec![argument("value", value)]),
            (Sort::Blocks, "group") => block("group", [], vec![argument("value", value)]),
            (Sort::Blocks, "single") => {
                let content = vec![argument("value", "\"v${single.key}\"")];
                dynamic("single", format!("{value} ? [1] : []"), Vec::new(), content)
            }
            (Sort::Blocks, "rule") => {
                dynamic("rule", value.to_owned(), Vec::new(), vec![argument("action", "rule.value")])
            }
            (Sort::Blocks, "rules") => {
                let port = dynamic("port", "[1, 2]".to_owned(), Vec::new(), vec![argument("number", "port.value")]);
                let content = vec![argument("action", "\"x${it.value}\""), argument("priority", "it.key"), port];
                dynamic("rule", value.to_owned(), vec![Part::Word("iterator", "it".to_owned())], content)
            }
            (Sort::Blocks, "entry") => {
                let labels = argument("labels", "[entry.key]");
                dynamic("entry", value.to_owned(), vec![labels], vec![argument("value", "entry.value")])
            }
            _ => argument(name, value),
        })
    }
}
