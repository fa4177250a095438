//! Reading a folder. What is outside of the subset is noted with its place; what is wrong is an error.

mod blocks;
mod calls;
mod check;
mod resources;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use crate::source::Source;
use crate::{Diagnostic, Diagnostics, Module, SourceRange, Unsupported};

/// More files than this is no folder of configuration.
const MAX_FILES: usize = 1000;

/// Loads the `.tf` files of one folder. An error means that the configuration is wrong; what is only outside of the
/// subset is in [`Module::unsupported`], and then errors are left to the engine that does know all of the language.
pub fn load(folder: &Path) -> Result<Module, Diagnostics> {
    load_as(folder, "")
}

/// The same for a folder whose files are called by `prefix` and their name: a module's inside of another.
pub(crate) fn load_as(folder: &Path, prefix: &str) -> Result<Module, Diagnostics> {
    let mut loader = Loader::new(folder, prefix);
    for name in file_names(folder)? {
        loader.read_file(folder, &name)?;
    }
    loader.finish()
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
        let configuration = [".tf", ".tf.json", ".tofu", ".tofu.json"].iter().any(|ending| name.ends_with(ending));
        if configuration && !backup && !entry.path().is_dir() {
            names.push(name);
        }
    }
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
    /// The resources seen so far: whether a data source, type and name.
    declared: HashSet<(bool, String, String)>,
    found: Vec<Diagnostic>,
}

impl Loader {
    fn new(folder: &Path, prefix: &str) -> Loader {
        let module = Module {
            folder: folder.to_path_buf(),
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
            unsupported: Vec::new(),
        };
        Loader { module, prefix: prefix.to_owned(), declared: HashSet::new(), found: Vec::new() }
    }

    fn read_file(&mut self, folder: &Path, name: &str) -> Result<(), Diagnostics> {
        let shown = format!("{}{name}", self.prefix);
        let start = SourceRange { file: shown.clone(), line: 1, column: 1 };
        let stem = name.strip_suffix(".tf");
        match stem {
            None => return self.skip_file(name, start),
            Some(stem) if stem == "override" || stem.ends_with("_override") => return self.skip_file(name, start),
            Some(_) => {}
        }
        let text = std::fs::read_to_string(folder.join(name)).map_err(|error| {
            Diagnostic::new("Failed to read file", format!("The file {name} cannot be read: {error}.")).at(start)
        })?;
        match Source::new(shown, text).parse_body() {
            Ok(body) => self.read_body(&body),
            Err(diagnostics) => self.report(diagnostics),
        }
        Ok(())
    }

    fn skip_file(&mut self, name: &str, range: SourceRange) -> Result<(), Diagnostics> {
        self.unsupported(format!("file {name}"), range);
        Ok(())
    }

    fn finish(mut self) -> Result<Module, Diagnostics> {
        self.module.resources.sort_by_key(crate::Resource::address);
        self.check_module();
        if self.module.unsupported.is_empty() {
            Diagnostics::check(self.found)?;
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
