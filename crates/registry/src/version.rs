use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {what}: {why}")]
pub struct VersionError {
    text: String,
    what: &'static str,
    why: String,
}

/// A version as providers have them: three numbers, and for a pre-release a suffix. Build metadata does not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    numbers: [u64; 3],
    pre: String,
}

impl Version {
    pub fn is_prerelease(&self) -> bool {
        !self.pre.is_empty()
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Version, VersionError> {
        match parse(text) {
            Ok((version, 3)) => Ok(version),
            Ok(_) => Err(VersionError { text: text.into(), what: "version", why: "it needs three numbers".into() }),
            Err(why) => Err(VersionError { text: text.into(), what: "version", why }),
        }
    }
}

/// A version of which the last numbers may be missing, and how many are there.
fn parse(text: &str) -> Result<(Version, usize), String> {
    let text = text.split_once('+').map_or(text, |(version, _)| version);
    let (numbers, pre) = text.split_once('-').unwrap_or((text, ""));
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() > 3 {
        return Err("it has more than three numbers".into());
    }
    let mut version = Version { numbers: [0; 3], pre: pre.into() };
    for (number, part) in version.numbers.iter_mut().zip(&parts) {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| digits).ok_or_else(|| format!("{part:?} is not a number"))?;
    }
    let good = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if text.contains('-') && !pre.split('.').all(good) {
        return Err(format!("{pre:?} is not a pre-release"));
    }
    Ok((version, parts.len()))
}

impl Ord for Version {
    /// A pre-release comes before its release; numbers in it are compared as numbers.
    fn cmp(&self, other: &Version) -> Ordering {
        let part = |one: &str, other: &str| match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let (mut one, mut two) = (self.pre.split('.'), other.pre.split('.'));
                loop {
                    match (one.next(), two.next()) {
                        (Some(a), Some(b)) => match part(a, b) {
                            Ordering::Equal => {}
                            unequal => break unequal,
                        },
                        (None, None) => break Ordering::Equal,
                        (None, Some(_)) => break Ordering::Less,
                        (Some(_), None) => break Ordering::Greater,
                    }
                }
            }
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if self.is_prerelease() { write!(f, "-{}", self.pre) } else { Ok(()) }
    }
}

/// What a configuration demands of a version: `>= 1.2, < 2.0, != 1.5.0`. All of it must hold; nothing is always met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints(Vec<Constraint>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Constraint {
    operator: Operator,
    version: Version,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// `~> 1.2`: at least that, and the same major version.
    SameMajor,
    /// `~> 1.2.3`: at least that, and the same minor version.
    SameMinor,
}

impl Constraints {
    /// A pre-release is allowed only where it is named exactly.
    pub fn allow(&self, version: &Version) -> bool {
        let named = |constraint: &Constraint| constraint.operator == Operator::Equal && constraint.version == *version;
        (!version.is_prerelease() || self.0.iter().any(named)) && self.0.iter().all(|one| one.allows(version))
    }

    /// Both must hold.
    pub fn and(mut self, other: Constraints) -> Constraints {
        self.0.extend(other.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Constraint {
    fn allows(&self, version: &Version) -> bool {
        let order = version.cmp(&self.version);
        let same = |count: usize| version.numbers[..count] == self.version.numbers[..count];
        match self.operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::SameMajor => order.is_ge() && same(1),
            Operator::SameMinor => order.is_ge() && same(2),
        }
    }
}

impl FromStr for Constraints {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Constraints, VersionError> {
        if text.trim().is_empty() {
            return Ok(Constraints::default());
        }
        let one = |part: &str| {
            let part = part.trim();
            let error = |why| VersionError { text: text.into(), what: "version constraint", why };
            let at = part.find(|c: char| !"=!<>~".contains(c)).unwrap_or(part.len());
            let (operator, rest) = part.split_at(at);
            let (version, count) = parse(rest.trim()).map_err(error)?;
            let operator = match (operator, count) {
                ("" | "=", _) => Operator::Equal,
                ("!=", _) => Operator::NotEqual,
                (">", _) => Operator::Greater,
                (">=", _) => Operator::GreaterOrEqual,
                ("<", _) => Operator::Less,
                ("<=", _) => Operator::LessOrEqual,
                ("~>", 3) => Operator::SameMinor,
                ("~>", _) => Operator::SameMajor,
                (other, _) => return Err(error(format!("{other:?} is not an operator"))),
            };
            Ok(Constraint { operator, version, text: part.into() })
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Constraints)
    }
}

impl Constraints {
    /// As a lock file has them; OpenTofu reads no other form. The versions have three numbers, but behind `~>`, where their
    /// count has a meaning; the lowest comes first.
    pub fn normalised(&self) -> String {
        let mut sorted: Vec<&Constraint> = self.0.iter().collect();
        sorted.sort_by(|one, other| one.version.cmp(&other.version));
        let mut parts: Vec<String> = sorted.into_iter().map(Constraint::normalised).collect();
        parts.dedup();
        parts.join(", ")
    }
}

impl Constraint {
    fn normalised(&self) -> String {
        let written = self.text.trim_start_matches(['=', '!', '<', '>', '~', ' ']).trim_start_matches('v');
        match self.operator {
            Operator::SameMajor | Operator::SameMinor => format!("~> {written}"),
            Operator::Equal => self.version.to_string(),
            Operator::NotEqual => format!("!= {}", self.version),
            Operator::Greater => format!("> {}", self.version),
            Operator::GreaterOrEqual => format!(">= {}", self.version),
            Operator::Less => format!("< {}", self.version),
            Operator::LessOrEqual => format!("<= {}", self.version),
        }
    }
}

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = self.0.iter().map(|constraint| constraint.text.as_str()).collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_lock_file_has_constraints_in_one_form() {
        let normalised = |text: &str| text.parse::<Constraints>().unwrap().normalised();
        assert_eq!(normalised(">= 1.0"), ">= 1.0.0");
        assert_eq!(normalised("~> 1.0, >=0.5"), ">= 0.5.0, ~> 1.0");
        assert_eq!(normalised(">= 0.9, != 0.10.0, < 1"), ">= 0.9.0, != 0.10.0, < 1.0.0");
        assert_eq!(normalised("= 1.2"), "1.2.0");
        assert_eq!(normalised("~>1.2.3"), "~> 1.2.3");
        assert_eq!(normalised(""), "");
    }

    #[test]
    fn versions_are_ordered_as_semver_has_it() {
        let order = [
            "0.9.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.9",
            "1.0.0-alpha.10",
            "1.0.0-beta",
            "1.0.0",
            "1.0.10",
        ];
        for pair in order.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("1.2.3+build"), version("1.2.3"));
        assert_eq!(version("1.2.3-rc.1").to_string(), "1.2.3-rc.1");
        for wrong in ["", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", "1.2.3-", "1.-2.3", "1.+2.3"] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn constraints_allow_what_the_cli_allows() {
        for (constraints, allowed, refused) in [
            ("", "0.0.1 99.0.0", "1.0.0-beta"),
            ("1.2.3", "1.2.3", "1.2.4 1.2.3-beta"),
            ("= 1.2", "1.2.0", "1.2.1"),
            ("!= 1.5.0", "1.4.0 1.5.1", "1.5.0"),
            ("> 1.0, <= 2.0", "1.0.1 2.0.0", "1.0.0 2.0.1"),
            (">= 1.2.3, < 2", "1.2.3 1.99.0", "1.2.2 2.0.0"),
            ("~> 1.2", "1.2.0 1.9.9", "1.1.9 2.0.0"),
            ("~> 1.2.3", "1.2.3 1.2.99", "1.2.2 1.3.0"),
            ("~> 1", "1.0.0 1.9.0", "0.9.0 2.0.0"),
            ("1.0.0-beta", "1.0.0-beta", "1.0.0 1.0.0-alpha"),
            (">= 1.0.0-beta", "1.0.0", "1.0.0-beta 1.0.0-rc"),
        ] {
            let parsed: Constraints = constraints.parse().unwrap();
            for one in allowed.split(' ') {
                assert!(parsed.allow(&version(one)), "{constraints:?} allows {one}");
            }
            for one in refused.split(' ') {
                assert!(!parsed.allow(&version(one)), "{constraints:?} refuses {one}");
            }
        }
        for wrong in [">", "=> 1.0", "1.0,", "^1.0", "~ 1.0", ">= a", "1.0 2.0"] {
            assert!(wrong.parse::<Constraints>().is_err(), "{wrong:?}");
        }
        assert_eq!(" >= 1 ,<2".parse::<Constraints>().unwrap().to_string(), ">= 1, <2");
    }
}
