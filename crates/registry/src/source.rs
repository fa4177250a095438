use std::fmt;
use std::str::FromStr;

const DEFAULT_HOST: &str = "registry.opentofu.org";
const DEFAULT_NAMESPACE: &str = "hashicorp";

/// A provider's source address. It is the provider's identity: the same name under another host is another provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    pub host: String,
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address:?} is not a provider's source address, such as \"hashicorp/time\": {why}")]
pub struct SourceError {
    address: String,
    why: &'static str,
}

impl Source {
    /// What a configuration means by a provider that it does not require by address.
    pub fn implied(name: &str) -> Result<Source, SourceError> {
        // The one provider that is part of the CLI.
        if name == "terraform" { "terraform.io/builtin/terraform".parse() } else { name.parse() }
    }

    /// Whether the provider is part of the program that runs the configuration, and no binary.
    pub fn is_builtin(&self) -> bool {
        self.host == "terraform.io" && self.namespace == "builtin"
    }
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(address: &str) -> Result<Source, SourceError> {
        let error = |why| SourceError { address: address.into(), why };
        let (host, namespace, name) = match address.split('/').collect::<Vec<_>>()[..] {
            [name] => (DEFAULT_HOST, DEFAULT_NAMESPACE, name),
            [namespace, name] => (DEFAULT_HOST, namespace, name),
            [host, namespace, name] => (host, namespace, name),
            _ => return Err(error("it has too many parts")),
        };
        let label = |text: &str| {
            let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !text.is_empty() && text.chars().all(good) && !text.starts_with('-') && !text.ends_with('-')
        };
        // The parts become folder names, so this is also what keeps a path inside of its mirror.
        let host_label = |text: &str| label(text.split_once(':').map_or(text, |(name, _)| name));
        if !host.split('.').all(host_label)
            || (address.split('/').count() == 3 && !host.contains('.') && !host.contains(':'))
        {
            return Err(error("the host name is not valid"));
        }
        if !label(namespace) || !label(name) {
            return Err(error("a part is not made of letters, digits, dashes and underscores"));
        }
        let lower = |text: &str| text.to_ascii_lowercase();
        Ok(Source { host: lower(host), namespace: lower(namespace), name: lower(name) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_addresses_mean_the_default_host_and_namespace() {
        for (short, long) in [
            ("time", "registry.opentofu.org/hashicorp/time"),
            ("coder/coder", "registry.opentofu.org/coder/coder"),
            ("Registry.Terraform.io/HashiCorp/Time", "registry.terraform.io/hashicorp/time"),
            ("example.com:8443/a/b", "example.com:8443/a/b"),
        ] {
            let source: Source = short.parse().unwrap();
            assert_eq!(source.to_string(), long);
            assert_eq!(long.parse::<Source>().unwrap(), source);
        }
        assert!(Source::implied("terraform").unwrap().is_builtin());
        assert!(!Source::implied("time").unwrap().is_builtin());
    }

    #[test]
    fn what_would_leave_a_mirror_is_refused() {
        for wrong in ["", "a/", "/a", "../time", "a/b/c/d", "host/a/b", "example.com/../b", "a/b c", "..", "a/.."] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong:?}");
        }
    }
}
