//! Which versions of OpenTofu a module is for. It comes before everything else that could be said about the module: to
//! another version the rest may be a foreign language.

use super::Loader;
use crate::{Diagnostic, RequiredVersion};

/// The version of OpenTofu that is worked as.
pub const OPENTOFU_VERSION: &str = "1.12.6";

impl Loader {
    pub(super) fn version_problems(&self) -> Vec<Diagnostic> {
        self.module.required_versions.iter().filter(|required| required.binding).filter_map(problem).collect()
    }
}

fn problem(required: &RequiredVersion) -> Option<Diagnostic> {
    let constraint = &required.constraint;
    let problem = match satisfies(constraint) {
        Some(true) => return None,
        Some(false) => Diagnostic::new(
            "Incompatible module",
            format!(
                "This module is not compatible with OpenTofu v{OPENTOFU_VERSION}.\n\nTo proceed, either choose another \
                 supported OpenTofu version or update this version constraint. Version constraints are normally set for good \
                 reason, so updating the constraint may lead to other errors or unexpected behavior."
            ),
        ),
        None if is_prerelease(constraint) => Diagnostic::new(
            "Invalid required_version constraint",
            format!(
                "Prerelease version constraints are not supported: {constraint}. Remove the prerelease information from the \
                 constraint. Prerelease versions of OpenTofu will match constraints using their version core only."
            ),
        ),
        None => {
            Diagnostic::new("Invalid version constraint", "This string does not use correct version constraint syntax.")
        }
    };
    Some(problem.at(required.range.clone()))
}

/// Whether the OpenTofu that is worked as satisfies a constraint; `None` if the constraint cannot be read.
fn satisfies(constraint: &str) -> Option<bool> {
    satisfied_by(OPENTOFU_VERSION, constraint)
}

fn satisfied_by(version: &str, constraint: &str) -> Option<bool> {
    let own = numbers(version)?;
    constraint.split(',').try_fold(true, |all, part| Some(one(part.trim(), &own)? && all))
}

fn one(part: &str, own: &[u64]) -> Option<bool> {
    let (operator, version) = operator_and_version(part)?;
    let given = numbers(version)?;
    let mut padded = given.clone();
    padded.resize(3, 0);
    let order = own.cmp(&padded[..]);
    Some(match operator {
        "" | "=" => order.is_eq(),
        "!=" => order.is_ne(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        // All but the last of the numbers that were given must be the same.
        "~>" => order.is_ge() && given[..given.len() - 1] == own[..given.len() - 1],
        _ => return None,
    })
}

fn operator_and_version(part: &str) -> Option<(&str, &str)> {
    let at = part.find(|character: char| character.is_ascii_digit() || character == 'v')?;
    Some((part[..at].trim(), part[at..].trim_start_matches('v')))
}

/// One to three numbers; a pre-release is none of ours.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let numbers: Vec<u64> = version.trim().split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    (1..=3).contains(&numbers.len()).then_some(numbers)
}

/// Whether this has the form of a constraint on versions, which may be ones that are not out yet.
pub(super) fn is_constraint(text: &str) -> bool {
    let operators = ["", "=", "!=", ">", ">=", "<", "<=", "~>"];
    let part = |part: &str| {
        let (operator, version) = operator_and_version(part.trim())?;
        let core = version.split(['-', '+']).next()?;
        let numeric = core.split('.').all(|number| number.parse::<u64>().is_ok());
        (operators.contains(&operator) && numeric).then_some(())
    };
    text.trim().is_empty() || text.split(',').all(|one| part(one).is_some())
}

/// Whether what cannot be read is a version that is not out yet, such as `>= 1.13.0-beta1`.
fn is_prerelease(constraint: &str) -> bool {
    constraint.split(',').any(|part| {
        let version = operator_and_version(part.trim()).map(|(_, version)| version);
        let core = version.and_then(|version| version.split_once('-')).map(|(core, _)| core);
        core.is_some_and(|core| numbers(core).is_some())
    })
}

/// Whether a constraint allows versions that know nothing of the block it stands in, which came with 1.12.0.
pub(super) fn allows_before_language_block(constraint: &str) -> bool {
    satisfied_by("1.11.0", constraint) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::{allows_before_language_block, is_constraint, is_prerelease, satisfies};

    #[test]
    fn constraints_are_held_against_the_version_that_is_worked_as() {
        for met in ["1.12.6", "= 1.12.6", ">= 1.5", "~> 1.0", "~> 1.12.0", ">= 1.0, < 2.0.0", "!= 1.12.5", "<= 1.12.6"]
        {
            assert_eq!(satisfies(met), Some(true), "{met}");
        }
        for unmet in ["~> 1.11.0", "> 1.12.6", ">= 1.13", "< 1.0", "1.5.0", ">= 1.0, != 1.12.6", "~> 2.0"] {
            assert_eq!(satisfies(unmet), Some(false), "{unmet}");
        }
        for unclear in ["", "latest", ">= 1.13.0-beta1", "=> 1.0"] {
            assert_eq!(satisfies(unclear), None, "{unclear}");
        }
        assert!(is_constraint("~> 1.0, >= 1.0.0-beta1") && !is_constraint("abc") && !is_constraint("=> 1"));
        assert!(is_prerelease(">= 1.13.0-beta1") && !is_prerelease("latest") && !is_prerelease("a-b"));
        assert!(allows_before_language_block(">= 1.5, < 2") && !allows_before_language_block(">= 1.12, < 2"));
    }
}
