//! What is to become of an object, according to its provider.

use landform_cty::{Mark, Path, Step, Type, Value};
use landform_protocol::{PlanAnswer, PlanResourceChange, Schema};

use super::{Bound, Identity, Memory, Object, Outcome, Planned, Reason, Wishes, bare, failed};
use crate::native::change::{
    attribute_at, invalid_plan, marks_with_ignored, path_text, proposed_new, sensitivity_differs, with_ignored,
};
use crate::{Action, Address};

impl Bound {
    /// Plans one object that the configuration wants. `earlier` is the plan that is being carried out, if one is.
    pub async fn plan(
        &self,
        address: &Address,
        prior: Option<&Object>,
        config: &Value,
        wishes: &Wishes<'_>,
        earlier: Option<&Planned>,
    ) -> Outcome<Planned> {
        let schema = self.resource(address)?;
        let block = &schema.block;
        let nothing = Value::null(block.implied_type());
        let tainted = prior.is_some_and(|object| object.tainted);
        let (prior_value, prior_private) = match prior {
            Some(object) if !tainted => (object.value.clone(), object.private.clone()),
            Some(_) => (nothing.clone(), Vec::new()),
            None => (nothing.clone(), wishes.gone_private.clone()),
        };
        let mut identity_before = prior.filter(|_| !tainted).and_then(|object| object.identity.clone());
        self.validate(address, config).await?;
        let keep = wishes.keep.clone()?;
        let (bare_config, config_marks) = config.clone().unmark_deep_with_paths();
        let (bare_prior, prior_marks) = prior_value.clone().unmark_deep_with_paths();
        let config_marks =
            marks_with_ignored(block, (&bare_prior, &prior_marks), (&bare_config, config_marks), wishes.ignore);
        let heeded = with_ignored(block, &bare_prior, &bare_config, wishes.ignore);
        let proposed = proposed_new(block, &bare_prior, &heeded);
        let known_by = identity_before.as_ref();
        let mut first = self.ask_plan(address, (&bare_prior, known_by), proposed, &heeded, prior_private).await?;
        if first.legacy_type_system {
            first.planned = with_ignored(block, &bare_prior, &first.planned, wishes.ignore);
        }
        let sensitive = config_marks.iter().chain(&prior_marks).filter(|(_, marks)| marks.contains(&Mark::Sensitive));
        let secret: Vec<Path> = sensitive.map(|(path, _)| path.clone()).collect();
        self.check_plan(address, schema, &first, (&bare_prior, &heeded), &secret)?;
        let replace_paths = self.real_replacements(address, schema, &first, &bare_prior)?;
        let writes_only =
            replace_paths.iter().any(|path| attribute_at(block, path).is_some_and(|attribute| attribute.write_only));
        let unchanged = first.planned.equals(&bare_prior).as_bool() == Some(true);
        let replace = if wishes.create_before_destroy { Action::CreateBeforeDestroy } else { Action::Replace };
        let mut action = if bare_prior.is_null() {
            Action::Create
        } else if writes_only || wishes.force.is_some() {
            replace
        } else if unchanged {
            Action::NoOp
        } else if !replace_paths.is_empty() {
            replace
        } else {
            Action::Update
        };
        let mut reason = match wishes.force {
            // OpenTofu names the trigger of an object that is only now made, too.
            Some(Reason::ReplaceByTriggers) if action == Action::Create => wishes.force,
            _ if action != replace => None,
            None => Some(Reason::ReplaceBecauseCannotUpdate),
            force => force,
        };
        let mut answer = first;
        if action == replace {
            // What comes after a replacement is a new object, so the provider plans it once more without the old one.
            let proposed = proposed_new(block, &nothing, &bare_config);
            answer = self.ask_plan(address, (&nothing, None), proposed, &bare_config, answer.planned_private).await?;
        }
        let mut before = prior_value;
        if action == Action::Create
            && let Some(old) = prior.filter(|object| object.tainted)
        {
            (action, reason, before) = (replace, Some(Reason::ReplaceBecauseTainted), old.value.clone());
            identity_before = old.identity.clone();
        }
        if action == replace && keep {
            action = Action::ForgetThenCreate;
        }
        let after = self.with_marks(schema, answer.planned, &config_marks);
        if action == Action::NoOp && sensitivity_differs(&before, &after) {
            action = Action::Update;
        }
        if let Some(earlier) = earlier
            && earlier.replaces()
            && action == Action::Create
        {
            // The old object is gone (or deposed) by now, so what is left of the replacement looks like a create.
            (action, before) = (earlier.action, earlier.before.clone());
            identity_before = earlier.identity_before.clone();
        }
        Ok(Planned {
            reason,
            private: answer.planned_private,
            identity_before,
            identity_after: self.identity(address, answer.planned_identity),
            replace_paths,
            ..Planned::plain(address, &self.address, action, (before, after))
        })
    }

    /// Plans the end of an object.
    pub async fn plan_destroy(&self, address: &Address, object: &Object, reason: Option<Reason>) -> Outcome<Planned> {
        let nothing = Value::null(self.resource(address)?.block.implied_type());
        let (mut private, mut identity_after) = (object.private.clone(), None);
        if self.schema.capabilities.plan_destroy {
            let prior = bare(&object.value);
            let prior = (&prior, object.identity.as_ref());
            let answer = self.ask_plan(address, prior, nothing.clone(), &nothing, private).await?;
            if !answer.planned.is_null() {
                return Err(vec![self.broken(
                    address,
                    "Provider produced invalid plan",
                    "planned a non-null destroy value",
                )]);
            }
            private = answer.planned_private;
            identity_after = self.identity(address, answer.planned_identity);
        }
        Ok(Planned {
            reason,
            private,
            identity_before: object.identity.clone(),
            identity_after,
            ..Planned::plain(address, &self.address, Action::Delete, (object.value.clone(), nothing))
        })
    }

    /// Plans that an object is let go: its provider has no part in that.
    pub fn plan_forget(&self, address: &Address, object: &Object, reason: Option<Reason>) -> Outcome<Planned> {
        let nothing = Value::null(self.resource(address)?.block.implied_type());
        Ok(Planned {
            reason,
            private: object.private.clone(),
            identity_before: object.identity.clone(),
            ..Planned::plain(address, &self.address, Action::Forget, (object.value.clone(), nothing))
        })
    }

    async fn ask_plan(
        &self,
        address: &Address,
        (prior, identity): (&Value, Option<&Identity>),
        proposed: Value,
        config: &Value,
        prior_private: Vec<u8>,
    ) -> Outcome<PlanAnswer> {
        let call = PlanResourceChange {
            type_name: address.type_name.clone(),
            prior: prior.clone(),
            proposed,
            config: config.clone(),
            prior_private,
            prior_identity: identity.map(|identity| identity.value.clone()),
        };
        let recalled = match &self.memory {
            Memory::Recalling(answers) => answers.plan(address, &call),
            Memory::None | Memory::Sound(_) | Memory::Keeping(_) => None,
        };
        let mut answer = match recalled {
            Some(answer) => answer,
            None => self.planned_by_provider(address, call).await?,
        };
        let diagnostics = std::mem::take(&mut answer.diagnostics);
        self.accept(address, diagnostics, answer)
    }

    async fn planned_by_provider(&self, address: &Address, call: PlanResourceChange) -> Outcome<PlanAnswer> {
        let asked = call.clone();
        let answer = self.provider.plan_resource_change(call).await.map_err(|error| failed(address, &error))?;
        if let Memory::Keeping(answers) = &self.memory {
            answers.keep_plan(address, asked, &answer);
        }
        Ok(answer)
    }

    fn check_plan(
        &self,
        address: &Address,
        schema: &Schema,
        answer: &PlanAnswer,
        (prior, config): (&Value, &Value),
        secret: &[Path],
    ) -> Outcome<()> {
        let problems = invalid_plan(&schema.block, prior, config, &answer.planned, secret);
        if answer.legacy_type_system {
            // The old SDK cannot help it; OpenTofu tolerates it too.
            for problem in problems {
                tracing::debug!(%address, problem, "tolerated: a plan of a provider with the legacy type system");
            }
            return Ok(());
        }
        let broken = |problem: &String| {
            let place = if problem.starts_with(['.', '[']) { "" } else { ": " };
            let words = format!(
                "Provider {:?} planned an invalid value for {address}{place}{problem}.",
                self.address.to_string()
            );
            self.blamed(address, "Provider produced invalid plan", words)
        };
        if problems.is_empty() { Ok(()) } else { Err(problems.iter().map(broken).collect()) }
    }

    /// Of the paths that require replacement those at which something really changes. Providers name them generously.
    fn real_replacements(
        &self,
        address: &Address,
        schema: &Schema,
        answer: &PlanAnswer,
        prior: &Value,
    ) -> Outcome<Vec<Path>> {
        let mut real: Vec<Path> = Vec::new();
        if prior.is_null() {
            return Ok(real);
        }
        for path in &answer.requires_replace {
            let path = resolve(path, prior, &answer.planned);
            let (before, after) = (prior.at_path(&path), answer.planned.at_path(&path));
            let null_of = |other: &Value| Value::null(other.ty.clone());
            let (before, after) = match (before, after) {
                (Some(before), Some(after)) => (before.clone(), after.clone()),
                (Some(before), None) => (before.clone(), null_of(before)),
                (None, Some(after)) => (null_of(after), after.clone()),
                (None, None) => {
                    let problem =
                        format!("indicated \"requires replacement\" for a non-existent path {}", path_text(&path));
                    return Err(vec![self.broken(address, "Provider produced invalid plan", &problem)]);
                }
            };
            let write_only = attribute_at(&schema.block, &path).is_some_and(|attribute| attribute.write_only);
            let changed = after.equals(&before).as_bool() != Some(true);
            if (changed || write_only) && !real.contains(&path) {
                real.push(path);
            }
        }
        Ok(real)
    }
}

/// The path in terms of the values: the wire does not tell a map's key from an attribute's name.
fn resolve(path: &landform_protocol::Path, prior: &Value, planned: &Value) -> Path {
    let mut resolved = Path::new();
    for step in path {
        let inside_map = [prior, planned]
            .iter()
            .find_map(|value| value.at_path(&resolved))
            .is_some_and(|value| matches!(value.ty, Type::Map(_)));
        resolved.push(match step {
            landform_protocol::Step::Attribute(name) => Step::Attribute(name.clone()),
            landform_protocol::Step::Key(key) if inside_map => Step::Key(key.clone()),
            landform_protocol::Step::Key(key) => Step::Attribute(key.clone()),
            landform_protocol::Step::Index(index) => Step::Index(usize::try_from(*index).unwrap_or(usize::MAX)),
        });
    }
    resolved
}
