//! What is known about providers: which may share a configured process, and how many calls they take at a time.

use landform_plugin::Terms;
use landform_registry::Source;
use serde::Deserialize;

/// Known here, by source and version, plus what the operator adds.
#[derive(Clone, Debug)]
pub struct KnownProviders {
    known: Vec<Known>,
}

#[derive(Clone, Debug, Deserialize)]
struct Known {
    source: String,
    /// Shown to answer from the world and not from memory, in just these versions.
    #[serde(default)]
    shared_versions: Vec<String>,
    /// Calls at a time for each configuration.
    concurrency: Option<usize>,
}

/// Not `NAMESPACE/TYPE@VERSION`.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not of the form NAMESPACE/TYPE@VERSION")]
pub struct NotAProvider(String);

impl KnownProviders {
    /// The list that comes with Landform.
    pub fn listed() -> KnownProviders {
        let known = serde_json::from_str(include_str!("known-providers.json"));
        KnownProviders { known: known.expect("the list is read by a test") }
    }

    /// Adds a provider, as `NAMESPACE/TYPE@VERSION`, whose configured processes may be shared between runs.
    pub fn share(&mut self, provider: &str) -> Result<(), NotAProvider> {
        let parts = provider.split_once('@').filter(|(_, version)| !version.is_empty());
        let (source, version) = parts.ok_or_else(|| NotAProvider(provider.into()))?;
        source.parse::<Source>().map_err(|_| NotAProvider(provider.into()))?;
        let shared_versions = vec![version.to_owned()];
        self.known.push(Known { source: source.into(), shared_versions, concurrency: None });
        Ok(())
    }

    pub fn terms(&self, source: &str, version: &str) -> Terms {
        let Ok(source) = source.parse::<Source>() else { return Terms::default() };
        let entries = self.known.iter().filter(|known| known.source.parse::<Source>().is_ok_and(|of| of == source));
        entries.fold(Terms::default(), |terms, known| Terms {
            shared: terms.shared || known.shared_versions.iter().any(|shared| shared == version),
            concurrency: terms.concurrency.or(known.concurrency),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_those_of_the_very_version() {
        let mut known = KnownProviders::listed();
        let time = |version| KnownProviders::listed().terms("registry.opentofu.org/hashicorp/time", version);
        assert_eq!(time("0.14.2"), Terms { shared: true, concurrency: None });
        assert_eq!(time("0.14.3"), Terms::default());
        assert_eq!(known.terms("example.com/hashicorp/time", "0.14.2"), Terms::default());
        let cato = known.terms("registry.opentofu.org/catonetworks/cato", "1.0.0");
        assert_eq!(cato, Terms { shared: false, concurrency: Some(1) });
        known.share("a/b@1.2.3").unwrap();
        assert!(known.terms("registry.opentofu.org/a/b", "1.2.3").shared);
        for wrong in ["a/b", "a/b@", "@1", "a b@1"] {
            assert!(known.share(wrong).is_err(), "{wrong}");
        }
    }
}
