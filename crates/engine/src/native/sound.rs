use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landform_cty::Value;
use landform_protocol::Diagnostics;
use sha2::{Digest, Sha256};

/// More than this are questions that come and go: then they are asked again.
const MOST: usize = 4096;

/// What providers were asked to validate and had nothing to say of, over all runs that go straight.
///
/// Whatever the inputs of a template are, the first questions about it are the same for every run: before anything is planned it is
/// validated with all inputs unknown, by a provider that is not configured yet. So its answer depends on nothing but its
/// binary, its environment and the question. Answers that say anything, be it a warning, are not kept.
#[derive(Clone, Default)]
pub struct Sound(Arc<Mutex<HashSet<Question>>>);

/// A hash: a question about a provider's configuration may hold secrets.
type Question = [u8; 32];

/// Those of one provider.
#[derive(Clone)]
pub struct SoundFor {
    all: Sound,
    provider: Sha256,
}

/// What is validated.
#[derive(Clone, Copy)]
pub enum Kind {
    Provider,
    Resource,
    Data,
}

impl Sound {
    pub fn for_provider(&self, digest: &str, environment: &BTreeMap<String, String>) -> SoundFor {
        let mut provider = Sha256::new();
        part(&mut provider, digest.as_bytes());
        part(&mut provider, &(environment.len() as u64).to_le_bytes());
        for (name, value) in environment {
            part(&mut provider, name.as_bytes());
            part(&mut provider, value.as_bytes());
        }
        SoundFor { all: self.clone(), provider }
    }

    fn all(&self) -> MutexGuard<'_, HashSet<Question>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SoundFor {
    /// Asks, unless the very same was found sound before.
    pub async fn unless_known<E>(
        &self,
        kind: Kind,
        type_name: &str,
        config: &Value,
        ask: impl Future<Output = Result<Diagnostics, E>>,
    ) -> Result<Diagnostics, E> {
        let question = self.question(kind, type_name, config);
        if question.is_some_and(|question| self.all.all().contains(&question)) {
            return Ok(Diagnostics::new());
        }
        let answer = ask.await?;
        if let Some(question) = question
            && answer.is_empty()
        {
            let mut all = self.all.all();
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(question);
        }
        Ok(answer)
    }

    /// `None`: it cannot be told from others. The type of what is asked about follows from the schema, and so from the binary.
    fn question(&self, kind: Kind, type_name: &str, config: &Value) -> Option<Question> {
        let bytes = config.to_msgpack(&config.ty).ok()?;
        let mut question = self.provider.clone();
        part(&mut question, &[kind as u8]);
        part(&mut question, type_name.as_bytes());
        part(&mut question, &bytes);
        Some(question.finalize().into())
    }
}

/// With its length, so that no two lists of parts read the same.
fn part(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use landform_cty::Type;
    use landform_protocol::{Diagnostic, Severity};

    /// Whether the provider was asked.
    async fn asked(of: &SoundFor, kind: Kind, type_name: &str, config: &Value, answer: Diagnostics) -> bool {
        let mut asked = false;
        let ask = async {
            asked = true;
            Ok::<_, ()>(answer)
        };
        of.unless_known(kind, type_name, config, ask).await.unwrap();
        asked
    }

    #[tokio::test]
    async fn only_the_very_same_question_is_not_asked_again() {
        let sound = Sound::default();
        let nothing = BTreeMap::new();
        let environment = BTreeMap::from([("REGION".to_owned(), "here".to_owned())]);
        let one = sound.for_provider("1", &nothing);
        let config = Value::object([("size".to_owned(), Value::unknown(Type::Number))]);
        let other = Value::object([("size".to_owned(), Value::number(1u64))]);
        let none = Diagnostics::new;
        assert!(asked(&one, Kind::Resource, "thing", &config, none()).await);
        assert!(!asked(&sound.for_provider("1", &nothing), Kind::Resource, "thing", &config, none()).await);
        assert!(asked(&one, Kind::Data, "thing", &config, none()).await);
        assert!(asked(&one, Kind::Resource, "other", &config, none()).await);
        assert!(asked(&one, Kind::Resource, "thing", &other, none()).await);
        assert!(asked(&sound.for_provider("2", &nothing), Kind::Resource, "thing", &config, none()).await);
        assert!(asked(&sound.for_provider("1", &environment), Kind::Resource, "thing", &config, none()).await);
    }

    #[tokio::test]
    async fn what_a_provider_has_said_something_of_is_asked_again() {
        let of = Sound::default().for_provider("1", &BTreeMap::new());
        let warning =
            Diagnostic { severity: Severity::Warning, summary: "old".into(), detail: String::new(), attribute: None };
        let config = Value::number(1u64);
        for _ in 0..2 {
            assert!(asked(&of, Kind::Provider, "", &config, vec![warning.clone()]).await);
        }
    }
}
