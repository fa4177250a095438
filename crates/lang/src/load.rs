//! Reading a folder. What is outside of the subset is noted with its place; what is wrong is an error.

mod addresses;
mod blocks;
mod calls;
mod check;
mod conditions;
mod names;
mod overrides;
mod provider_keys;
mod references;
mod resources;
mod terraform;
mod version;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use hcl_edit::structure::Structure;

use crate::source::Source;
use crate::{Body, Diagnostic, Diagnostics, Expr, Module, Reference, RequiredVersion, SourceRange, Unsupported};

pub use provider_keys::repeated_alike;
pub(crate) use references::not_static;
pub use version::OPENTOFU_VERSION;

/// More files than this is no folder of configuration.
const MAX_FILES: usize = 1000;

/// Loads the files of one folder. An error means that the configuration is wrong; what is only outside of the
/// subset is in [`Module::unsupported`], and then errors are left to the engine that does know all of the language.
pub fn load(folder: &Path) -> Result<Module, Diagnostics> {
    load_as(folder, "", None)
}

/// Whether the files of a folder can be read, each for itself: what is in them twice is no concern but of variables and
/// locals, nor is what they refer to. OpenTofu wants that much of a folder even where nothing but its state is looked at.
pub fn check_files(folder: &Path) -> Result<(), Diagnostics> {
    let loader = read(folder, "", None)?;
    Diagnostics::check(loader.version_problems())?;
    let of_values =
        |one: &Diagnostic| one.summary.starts_with("Duplicate variable") || one.summary.starts_with("Duplicate local");
    let doubles = loader.doubles;
    let found = loader.found.into_iter().enumerate();
    let found = found.filter(|(at, one)| !doubles.contains(at) || of_values(one)).map(|(_, one)| one);
    Diagnostics::check(found.collect())
}

/// What a folder says about the version of the tool, whatever else may be wrong with it or outside of the subset.
pub fn required_versions(folder: &Path) -> Vec<RequiredVersion> {
    read(folder, "", None).map(|loader| loader.module.required_versions).unwrap_or_default()
}

/// The same for a folder whose files are called by `prefix` and their name: a module's inside of another. Where files are
/// `kept`, by these names, those of the folder do not matter any longer.
pub(crate) fn load_as(folder: &Path, prefix: &str, kept: Option<&KeptFiles>) -> Result<Module, Diagnostics> {
    read(folder, prefix, kept)?.finish()
}

fn read(folder: &Path, prefix: &str, kept: Option<&KeptFiles>) -> Result<Loader, Diagnostics> {
    let mut loader = Loader::new(folder, prefix);
    let (mut primary, mut overriding) = (Vec::new(), Vec::new());
    let texts = match kept {
        Some(kept) => kept_texts(kept, prefix),
        None => read_texts(folder, prefix)?,
    };
    let kept = texts.iter().map(|(name, text)| (format!("{prefix}{name}"), text.clone()));
    loader.module.files = Arc::new(kept.collect());
    for (name, text) in texts {
        if let Some(body) = loader.parse_file(&name, text) {
            if is_override(&name) { overriding.push(body) } else { primary.push(body) }
        }
    }
    if overriding.is_empty() {
        primary.iter().for_each(|body| loader.read_body(body));
    } else {
        loader.read_overridden(&primary, &overriding);
    }
    Ok(loader)
}

/// Files of configuration with their text, by their place as seen from the root module.
pub type KeptFiles = BTreeMap<String, String>;

fn kept_texts(kept: &KeptFiles, prefix: &str) -> Vec<(String, String)> {
    let own = |(place, text): (&String, &String)| {
        let name = place.strip_prefix(prefix)?;
        (!name.contains('/')).then(|| (name.to_owned(), text.clone()))
    };
    kept.iter().filter_map(own).collect()
}

/// The files of a folder in the order of their names, each with its text.
fn read_texts(folder: &Path, prefix: &str) -> Result<Vec<(String, String)>, Diagnostics> {
    let read = |name: String| {
        let text = std::fs::read_to_string(folder.join(&name)).map_err(|error| {
            let start = SourceRange { file: format!("{prefix}{name}"), line: 1, column: 1, end: (1, 1) };
            Diagnostic::new("Failed to read file", format!("The file {name} cannot be read: {error}.")).at(start)
        })?;
        Ok((name, text))
    };
    file_names(folder)?.into_iter().map(read).collect()
}

/// The endings of files of configuration; where two files differ by it only, the first of a pair counts.
const ENDINGS: [&str; 4] = [".tofu", ".tf", ".tofu.json", ".tf.json"];

fn stem(name: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

fn is_override(name: &str) -> bool {
    stem(name).is_some_and(|stem| stem == "override" || stem.ends_with("_override"))
}

/// The names of all files that OpenTofu would look at, sorted.
fn file_names(folder: &Path) -> Result<Vec<String>, Diagnostics> {
    let unreadable = |error: std::io::Error| {
        let detail = format!("The folder {} cannot be read: {error}.", folder.display());
        Diagnostics::from(Diagnostic::new("Failed to read module directory", detail))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let backup = name.starts_with('.') || name.ends_with('~') || (name.starts_with('#') && name.ends_with('#'));
        if stem(&name).is_some() && !backup && !entry.path().is_dir() {
            names.push(name);
        }
    }
    // `x.tofu` is there so that another tool reads `x.tf` in its place.
    let all: HashSet<String> = names.iter().cloned().collect();
    let preferred = |name: &str| {
        let endings = [(".tf", ".tofu"), (".tf.json", ".tofu.json")];
        endings.iter().find_map(|(ending, better)| Some(format!("{}{better}", name.strip_suffix(ending)?)))
    };
    names.retain(|name| preferred(name).is_none_or(|better| !all.contains(&better)));
    if names.len() > MAX_FILES {
        let detail = format!("The folder has more than {MAX_FILES} files of configuration.");
        return Err(Diagnostic::new("Too many files", detail).into());
    }
    names.sort();
    Ok(names)
}

struct Loader {
    module: Module,
    prefix: String,
    /// The resources seen so far: whether a data source, type and name; and where each is.
    declared: HashMap<(bool, String, String), SourceRange>,
    /// What is named in `depends_on`, wherever it stands.
    dependencies: Vec<(Reference, SourceRange)>,
    /// Where `required_providers` stands.
    required_at: Option<SourceRange>,
    /// The data sources of checks, by type and name, with the check that each belongs to.
    scoped: HashMap<(String, String), String>,
    /// Where modules are, by the names of their calls, still to be evaluated.
    sources: Vec<(String, Expr)>,
    /// References to providers, to be looked at when all are known.
    chosen: Vec<provider_keys::Chosen>,
    found: Vec<Diagnostic>,
    /// Those of them, by their place, that two blocks together have made.
    doubles: HashSet<usize>,
}

impl Loader {
    fn new(folder: &Path, prefix: &str) -> Loader {
        let module = Module {
            folder: folder.to_path_buf(),
            files: Arc::default(),
            variables: BTreeMap::new(),
            locals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            resources: Vec::new(),
            calls: BTreeMap::new(),
            moved: Vec::new(),
            removed: Vec::new(),
            imports: Vec::new(),
            checks: BTreeMap::new(),
            providers: Vec::new(),
            required_providers: BTreeMap::new(),
            required_versions: Vec::new(),
            ignored: Vec::new(),
            warnings: Vec::new(),
            mentions: Vec::new(),
            self_references: Vec::new(),
            problems: Vec::new(),
            unsupported: Vec::new(),
        };
        let (declared, scoped) = (HashMap::new(), HashMap::new());
        Loader {
            module,
            prefix: prefix.to_owned(),
            declared,
            dependencies: Vec::new(),
            required_at: None,
            scoped,
            sources: Vec::new(),
            chosen: Vec::new(),
            found: Vec::new(),
            doubles: HashSet::new(),
        }
    }

    /// Reads a file; what cannot be read is noted.
    fn parse_file(&mut self, name: &str, text: String) -> Option<Body> {
        let shown = format!("{}{name}", self.prefix);
        let source = if name.ends_with(".json") { Source::of_json(shown, text) } else { Ok(Source::new(shown, text)) };
        match source.and_then(Source::parse_body) {
            Ok(body) => Some(body),
            Err(diagnostics) => {
                self.report(diagnostics);
                None
            }
        }
    }

    /// All files are read as one, so that a block may have parts of several of them.
    fn read_overridden(&mut self, primary: &[Body], overriding: &[Body]) {
        let count: usize = primary.iter().map(|body| body.node.len()).sum();
        let sources: Vec<Arc<Source>> = primary.iter().chain(overriding).map(|body| body.source.clone()).collect();
        let all = match Source::concatenated(&sources).parse_body() {
            Ok(all) => all,
            Err(diagnostics) => return self.report(diagnostics),
        };
        let mut structures: Vec<Structure> = all.node.iter().cloned().collect();
        let overrides = structures.split_off(count.min(structures.len())).into_iter().collect();
        let overrides = Body { node: overrides, source: all.source.clone(), begin: 0 };
        let (node, problems) = overrides::merged(structures.into_iter().collect(), &overrides);
        self.report(problems);
        self.read_body(&Body { node, source: all.source, begin: 0 });
    }

    fn finish(mut self) -> Result<Module, Diagnostics> {
        Diagnostics::check(self.version_problems())?;
        self.module.resources.sort_by_key(crate::Resource::address);
        self.check_provider_keys();
        self.read_sources();
        let wrong = std::mem::take(&mut self.found);
        self.check_module();
        self.module.problems = std::mem::replace(&mut self.found, wrong);
        // That a condition is about the very thing it belongs to is found as soon as the block is read.
        let own = |problem: &mut Diagnostic| problem.summary.starts_with("Invalid reference in p");
        self.found.extend(self.module.problems.extract_if(.., own));
        if self.module.unsupported.is_empty() {
            Diagnostics::check(self.found)?;
        } else {
            self.module.problems.clear();
        }
        self.module.unsupported.sort_by(|left, right| left.range.cmp(&right.range));
        Ok(self.module)
    }

    fn unsupported(&mut self, construct: impl Into<String>, range: SourceRange) {
        self.module.unsupported.push(Unsupported { construct: construct.into(), range });
    }

    /// Takes note of diagnostics, each according to its cause.
    fn report(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in diagnostics {
            match (diagnostic.cause, diagnostic.range.clone()) {
                (crate::Cause::Unsupported, Some(range)) => self.unsupported(diagnostic.detail, range),
                _ => self.found.push(diagnostic),
            }
        }
    }
}

#[cfg(test)]
mod tests;
