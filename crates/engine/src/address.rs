use std::fmt;

/// The address of one object: `time_static.now`, `time_static.now[0]`, `module.net.time_static.now["a"]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// As state format 4 writes it, for instance `module.net`; empty for the root module.
    pub module: String,
    pub data: bool,
    pub type_name: String,
    pub name: String,
    pub key: Option<Key>,
}

/// Numbers come before strings, as state format 4 sorts them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Index(u64),
    Name(String),
}

impl Address {
    pub fn managed(type_name: impl Into<String>, name: impl Into<String>, key: Option<Key>) -> Address {
        Address { module: String::new(), data: false, type_name: type_name.into(), name: name.into(), key }
    }

    /// The resource that this object is an instance of.
    pub fn resource(&self) -> String {
        Address { key: None, ..self.clone() }.to_string()
    }

    /// `TYPE.NAME`, or `data.TYPE.NAME`: the resource's address inside of its module.
    pub fn local(&self) -> String {
        let prefix = if self.data { "data." } else { "" };
        format!("{prefix}{}.{}", self.type_name, self.name)
    }

    /// Whether each module on the way is a name, with a number or a quoted text as its key if it has one.
    pub fn has_module_names(&self) -> bool {
        let is_name = |name: &str| {
            let mut letters = name.chars();
            letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
                && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
        };
        let steps = split_dots(&self.module).into_iter().skip(1).step_by(2);
        steps.into_iter().all(|step| match split_key(step) {
            Some((name, Some(key))) => is_name(name) && step == format!("{name}[{key}]"),
            Some((name, None)) => is_name(name),
            None => false,
        })
    }

    /// Whether this object is the one at `outer`, or belongs to the resource or the module there.
    pub fn is_within(&self, outer: &str) -> bool {
        let own = self.to_string();
        own.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// How OpenTofu sorts objects for people: what is less deep in modules first, data sources before the rest.
    pub fn order(&self) -> impl Ord + use<> {
        let steps = split_dots(&self.module).into_iter().skip(1).step_by(2);
        let path: Vec<(String, Option<Key>)> = steps
            .map(|step| split_key(step).map_or((step.to_owned(), None), |(name, key)| (name.to_owned(), key)))
            .collect();
        (path.len(), path, !self.data, self.type_name.clone(), self.name.clone(), self.key.clone())
    }

    /// Reads the form that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Address> {
        let (rest, key) = split_key(text)?;
        let mut parts: Vec<&str> = split_dots(rest);
        let name = parts.pop()?;
        let type_name = parts.pop()?;
        let data = parts.last() == Some(&"data") && parts.len() % 2 == 1;
        if data {
            parts.pop();
        }
        let modules_well_formed =
            parts.len().is_multiple_of(2) && parts.chunks(2).all(|pair| pair[0] == "module" && !pair[1].is_empty());
        let reserved = matches!(type_name, "" | "module" | "data");
        if name.is_empty() || reserved || !modules_well_formed || name.contains('[') {
            return None;
        }
        Some(Address { module: parts.join("."), data, type_name: type_name.into(), name: name.into(), key })
    }
}

/// The address of the block that an object belongs to: without any keys.
pub fn config_address(address: &Address) -> String {
    let keyless = Address { module: module_path(&address.module), key: None, ..address.clone() };
    keyless.to_string()
}

/// `module.a.module.b` of `module.a[0].module.b["x"]`.
pub fn module_path(instance: &str) -> String {
    let (mut path, mut inside, mut quoted, mut escaped) = (String::new(), false, false, false);
    for character in instance.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' if !quoted => inside = true,
            ']' if !quoted => inside = false,
            other if !inside => path.push(other),
            _ => {}
        }
    }
    path
}

/// Dots inside of brackets belong to a module's string key.
fn split_dots(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'.' if !quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_key(text: &str) -> Option<(&str, Option<Key>)> {
    let Some(inside) = text.strip_suffix(']') else { return Some((text, None)) };
    if inside.ends_with('"') {
        let open = last_key(inside)?;
        let name: String = serde_json::from_str(&inside[open + 1..]).ok()?;
        return Some((&text[..open], Some(Key::Name(name.replace("$${", "${").replace("%%{", "%{")))));
    }
    let (before, index) = inside.rsplit_once('[')?;
    Some((before, Some(Key::Index(index.parse().ok()?))))
}

/// Where the bracket of the last string key opens.
fn last_key(inside: &str) -> Option<usize> {
    let (mut quoted, mut escaped, mut open) = (false, false, None);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => {
                quoted = !quoted;
                if quoted {
                    open = at.checked_sub(1).filter(|bracket| inside.as_bytes()[*bracket] == b'[');
                }
            }
            _ => {}
        }
    }
    open.filter(|_| !quoted)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.module.is_empty() {
            write!(f, "{}.", self.module)?;
        }
        if self.data {
            f.write_str("data.")?;
        }
        write!(f, "{}.{}", self.type_name, self.name)?;
        match &self.key {
            None => Ok(()),
            Some(key) => write!(f, "[{key}]"),
        }
    }
}

/// As it stands between brackets.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Index(index) => write!(f, "{index}"),
            // An address is an expression of the language: in its strings, these would begin a template.
            Key::Name(name) => {
                let quoted = serde_json::Value::from(name.as_str()).to_string();
                f.write_str(&quoted.replace("${", "$${").replace("%{", "%%{"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_a_round_trip() {
        for text in [
            "time_static.now",
            "time_static.now[0]",
            "time_static.now[\"a.b\\\"]c\"]",
            "data.coder_workspace.me",
            "module.net.time_static.now",
            "time_static.now[\"$${a} %%{b}\"]",
            "module.net[\"x.y\"].module.sub[2].data.coder_workspace.me[\"k\"]",
        ] {
            let address = Address::parse(text).unwrap_or_else(|| panic!("{text} is not read"));
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(Address::parse("module.net.time_static.now").unwrap().module, "module.net");
        assert_eq!(Address::parse("a.b[\"$${a}\"]").unwrap().key, Some(Key::Name("${a}".to_owned())));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "time_static", "time_static.", ".now", "time_static.now[x]", "a.b.c.d", "module.x", "a.b]"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }
}
