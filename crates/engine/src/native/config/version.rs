use crate::state::TERRAFORM_VERSION;

/// Whether the OpenTofu that this engine works as satisfies a `required_version`; `None` if the constraint cannot be
/// read.
pub fn satisfies(constraint: &str) -> Option<bool> {
    let own = numbers(TERRAFORM_VERSION)?;
    constraint.split(',').try_fold(true, |all, part| Some(one(part.trim(), &own)? && all))
}

fn one(part: &str, own: &[u64]) -> Option<bool> {
    let at = part.find(|character: char| character.is_ascii_digit() || character == 'v')?;
    let (operator, version) = (part[..at].trim(), part[at..].trim_start_matches('v'));
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

/// One to three numbers; a pre-release is none of ours.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let numbers: Vec<u64> = version.trim().split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    (1..=3).contains(&numbers.len()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::satisfies;

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
    }
}
