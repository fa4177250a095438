use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use landform_protocol::wire::Version;

/// A story for two engines: one text file, `corpus/NAME.case`. See docs/oracle.md for how it is written.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// What it shows.
    pub about: String,
    /// Names of providers: `probe`, `time`, `coder`.
    pub providers: Vec<String>,
    /// In which protocols the probe is to speak.
    pub protocols: Vec<Version>,
    pub engine: Engine,
    /// Whether the streams of `-json` are compared, too: the story is lived through once more for them.
    pub streams: bool,
    /// Whether nothing in it is made up anew each time, so that values are compared as they are.
    pub exact: bool,
    /// Places where what is printed is known to differ: texts and streams alone.
    pub other_words: Vec<String>,
    pub steps: Vec<Step>,
    /// All of it, for the recording's key.
    pub text: String,
    /// Where it lies; its recording lies below.
    pub folder: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    Native,
    /// Outside of the native engine's subset, for this reason.
    Cli(String),
    /// The native engine takes it, and is not equal yet: a fault that is known, with its reason.
    Differs(String),
}

/// A case with the probe in one of its protocols.
#[derive(Clone, Debug)]
pub struct Variant {
    pub case: Case,
    pub protocol: Version,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub name: String,
    /// Flags of the plan, or a whole command.
    pub args: Vec<String>,
    /// A command in place of plan and apply.
    pub is_command: bool,
    pub end: End,
    /// What changes in the folder before the step, by path.
    pub files: BTreeMap<String, Change>,
}

#[derive(Clone, Debug)]
pub enum Change {
    Written(String),
    /// The same, with lines that end as on Windows.
    WrittenCrlf(String),
    Appended(String),
    Gone,
}

/// How the author says that a step ends; both engines are held to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Applied,
    /// The plan finds nothing to do.
    Nothing,
    /// The plan or the apply fails.
    Fails,
    /// Only planned, never applied.
    Planned,
}

/// Where our cases and their recordings are.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

impl Case {
    /// All cases of a folder, by name.
    pub fn all(folder: &Path) -> Result<Vec<Case>> {
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "case"));
        paths.sort();
        paths.iter().map(|path| Case::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Case> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path)?;
        let case = Case::parse(&name, &text).with_context(|| path.display().to_string())?;
        Ok(Case { folder: path.parent().unwrap_or(Path::new("")).to_owned(), ..case })
    }

    pub fn parse(name: &str, text: &str) -> Result<Case> {
        let mut case = Case {
            name: name.into(),
            about: String::new(),
            providers: Vec::new(),
            protocols: vec![Version::V6],
            engine: Engine::Native,
            streams: false,
            exact: false,
            other_words: Vec::new(),
            steps: Vec::new(),
            text: text.into(),
            folder: PathBuf::new(),
        };
        // The file that lines go to, and how it is changed.
        let mut file: Option<(String, Change)> = None;
        for (number, line) in text.lines().enumerate() {
            let at = || format!("line {}", number + 1);
            if let Some(rest) = line.strip_prefix("=== ") {
                case.close(&mut file)?;
                case.steps.push(step(rest).with_context(at)?);
            } else if let Some(path) = line.strip_prefix("--- ") {
                case.close(&mut file)?;
                file = Some(match (path.strip_suffix(" (gone)"), path.strip_suffix(" (crlf)")) {
                    (Some(path), _) => (path.into(), Change::Gone),
                    (_, Some(path)) => (path.into(), Change::WrittenCrlf(String::new())),
                    (None, None) => (path.into(), Change::Written(String::new())),
                });
            } else if let Some(path) = line.strip_prefix("+++ ") {
                case.close(&mut file)?;
                file = Some((path.into(), Change::Appended(String::new())));
            } else if let Some((_, Change::WrittenCrlf(content))) = &mut file {
                content.push_str(line);
                content.push_str("\r\n");
            } else if let Some((_, Change::Written(content) | Change::Appended(content))) = &mut file {
                content.push_str(line);
                content.push('\n');
            } else if case.steps.is_empty() {
                case.header(line).with_context(at)?;
            } else {
                ensure!(line.trim().is_empty(), "{}: this line belongs to no file", at());
            }
        }
        case.close(&mut file)?;
        ensure!(!case.about.is_empty(), "the first lines should say what the case shows");
        ensure!(!case.steps.is_empty(), "there are no steps");
        Ok(case)
    }

    fn header(&mut self, line: &str) -> Result<()> {
        match line.split_once(": ") {
            Some(("providers", names)) => {
                self.providers = names.split_whitespace().map(str::to_owned).collect();
                for name in &self.providers {
                    ensure!(
                        ["probe", "time", "coder", "aws"].contains(&name.as_str()),
                        "there is no provider {name:?}"
                    );
                }
            }
            Some(("protocols", numbers)) => {
                let version = |text: &str| text.parse().ok().and_then(Version::from_number);
                let versions: Option<Vec<Version>> = numbers.split_whitespace().map(version).collect();
                self.protocols = versions.context("protocols are 5 and 6")?;
            }
            Some(("streams", "yes")) => self.streams = true,
            Some(("exact", "yes")) => self.exact = true,
            Some(("text differs", place)) => self.other_words.push(place.into()),
            Some(("left to the cli", reason)) => self.engine = Engine::Cli(reason.into()),
            Some(("known difference", reason)) => self.engine = Engine::Differs(reason.into()),
            _ if line.trim().is_empty() => {}
            _ => {
                self.about.push_str(if self.about.is_empty() { "" } else { " " });
                self.about.push_str(line.trim());
            }
        }
        Ok(())
    }

    fn close(&mut self, file: &mut Option<(String, Change)>) -> Result<()> {
        let Some((path, change)) = file.take() else { return Ok(()) };
        let inside = !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| part != "..");
        ensure!(inside, "{path:?} is not a path inside of the folder");
        let step = self.steps.last_mut().context("a file comes before the first step")?;
        step.files.insert(path, change);
        Ok(())
    }

    pub fn variants(&self) -> Vec<Variant> {
        self.protocols.iter().map(|protocol| Variant { case: self.clone(), protocol: *protocol }).collect()
    }
}

impl Variant {
    /// The case's name, and the protocol where it is not the usual one.
    pub fn name(&self) -> String {
        match self.protocol {
            Version::V6 => self.case.name.clone(),
            version => format!("{}.{version}", self.case.name),
        }
    }

    /// The `terraform` and `provider` blocks that every story with these providers begins with.
    pub fn head(&self) -> String {
        let required = |name: &String| {
            let source = match name.as_str() {
                "probe" => crate::probe::source(self.protocol).to_owned(),
                "coder" => "coder/coder".to_owned(),
                name => format!("hashicorp/{name}"),
            };
            format!("    {name} = {{ source = {source:?} }}\n")
        };
        let required: String = self.case.providers.iter().map(required).collect();
        if required.is_empty() {
            return String::new();
        }
        format!("terraform {{\n  required_providers {{\n{required}  }}\n}}\n")
    }
}

fn step(line: &str) -> Result<Step> {
    let (line, end) = match line.split_once(" -> ") {
        None => (line, End::Applied),
        Some((line, "nothing")) => (line, End::Nothing),
        Some((line, "fails")) => (line, End::Fails),
        Some((line, "planned")) => (line, End::Planned),
        Some((_, other)) => bail!("a step ends with nothing, fails or planned, not {other:?}"),
    };
    let mut words = line.split_whitespace().map(str::to_owned);
    let name = words.next().context("a step has a name")?;
    let mut args: Vec<String> = words.collect();
    let is_command = args.first().is_some_and(|first| first == "$");
    if is_command {
        args.remove(0);
        ensure!(!args.is_empty(), "there is no command after $");
    }
    Ok(Step { name, args, is_command, end, files: BTreeMap::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Shows that\nit is read.\nproviders: probe time\nprotocols: 5 6\n\n=== one -var=a=1\n--- main.tf\n# a\n\n# b\n\
                        --- sub/x.tf\n# x\n=== two $ state rm a.b -> fails\n--- sub/x.tf (gone)\n+++ probe.ledger\n{}\n";

    #[test]
    fn a_case_is_read() {
        let case = Case::parse("n", TEXT).unwrap();
        assert_eq!((case.about.as_str(), case.engine.clone()), ("Shows that it is read.", Engine::Native));
        assert_eq!((case.providers.len(), case.protocols.len(), case.steps.len()), (2, 2, 2));
        let [one, two] = &case.steps[..] else { panic!() };
        assert!(matches!(&one.files["main.tf"], Change::Written(text) if text == "# a\n\n# b\n"));
        assert_eq!((one.args.join(" "), one.end, one.is_command), ("-var=a=1".into(), End::Applied, false));
        assert_eq!((two.args.join(" "), two.end, two.is_command), ("state rm a.b".into(), End::Fails, true));
        assert!(matches!(two.files["sub/x.tf"], Change::Gone));
        assert!(matches!(&two.files["probe.ledger"], Change::Appended(text) if text == "{}\n"));
        let names: Vec<String> = case.variants().iter().map(Variant::name).collect();
        assert_eq!(names, ["n.5", "n"]);
    }

    #[test]
    fn a_mistake_is_said_with_its_line() {
        let wrong = [
            ("=== one\n", "should say"),
            ("About.\n", "no steps"),
            ("About.\nproviders: nobody\n=== one\n", "line 2"),
            ("About.\n=== one -> maybe\n", "line 2"),
            ("About.\n=== one\nstray\n", "line 3"),
            ("About.\n=== one\n--- ../x\n", "inside"),
            ("About.\nprotocols: 4\n=== one\n", "line 2"),
        ];
        for (text, expected) in wrong {
            let error = format!("{:#}", Case::parse("n", text).unwrap_err());
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
