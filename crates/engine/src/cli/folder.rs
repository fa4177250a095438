use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hcl_edit::Span;
use hcl_edit::structure::{Body, Structure};
use sha2::{Digest, Sha256};

use super::{failed, hex};
use crate::{Diagnostic, EngineError, Severity, SourceRange};

/// What a run may have left in a folder; it is not configuration.
const LEFTOVERS: [&str; 5] =
    [".terraform", "terraform.tfstate", "terraform.tfstate.backup", "errored.tfstate", ".terraform.tfstate.lock.info"];

/// All names with this beginning are ours.
const OURS: &str = "zzzz_landform";
const OVERRIDE: &str = "zzzz_landform_override.tf";
const ADOPTIONS: &str = "zzzz_landform_adopt.tf.json";

/// The files of a template folder, read once: what is hashed is what is run.
pub(super) struct Folder {
    files: BTreeMap<PathBuf, Vec<u8>>,
    pub digest: String,
}

impl Folder {
    pub fn read(root: &Path) -> Result<Folder, EngineError> {
        let mut files = BTreeMap::new();
        read_into(&mut files, root, Path::new(""))?;
        let mut hash = Sha256::new();
        for (path, bytes) in &files {
            let name = path.as_os_str().as_encoded_bytes();
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        Ok(Folder { files, digest: hex(&hash.finalize()) })
    }

    /// Writes the files and an override that keeps the state in a local file, whatever backend they ask for.
    pub fn write(&self, target: &Path) -> Result<(), EngineError> {
        for (path, bytes) in &self.files {
            let file = target.join(path);
            let parent = file.parent().unwrap_or(target);
            std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
            std::fs::write(&file, bytes).map_err(|e| failed(&file, e))?;
        }
        let file = target.join(OVERRIDE);
        std::fs::write(&file, "terraform {\n  backend \"local\" {}\n}\n").map_err(|e| failed(&file, e))
    }

    /// The names of the root module's variables that are declared `sensitive` or `ephemeral`, with their defaults.
    pub fn secret_variables(&self) -> Vec<(String, Option<String>)> {
        let mut found = Vec::new();
        for (path, bytes) in &self.files {
            let (Some(name), Ok(text)) = (path.to_str(), std::str::from_utf8(bytes)) else { continue };
            if name.contains('/') || !(name.ends_with(".tf") || name.ends_with(".tofu")) {
                continue;
            }
            let Ok(body) = text.parse::<Body>() else { continue };
            for block in body.iter().filter_map(Structure::as_block).filter(|b| b.ident.as_str() == "variable") {
                let attribute = |name: &str| block.body.get_attribute(name).map(|attribute| &attribute.value);
                let is = |name: &str| attribute(name).and_then(|value| value.as_bool()) == Some(true);
                if let Some(label) = block.labels.first().filter(|_| is("sensitive") || is("ephemeral")) {
                    let default = attribute("default").and_then(|value| value.as_str()).map(str::to_owned);
                    found.push((label.as_str().to_owned(), default));
                }
            }
        }
        found
    }

    /// A warning for each `backend` and `cloud` block of the root module. A file that cannot be parsed has none: the
    /// CLI will say what is wrong with it.
    pub fn ignored_backends(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (path, bytes) in &self.files {
            let (Some(name), Ok(text)) = (path.to_str(), std::str::from_utf8(bytes)) else { continue };
            if name.contains('/') {
                continue;
            }
            if name.ends_with(".tf") || name.ends_with(".tofu") {
                find_in_hcl(name, text, &mut found);
            } else if name.ends_with(".tf.json") || name.ends_with(".tofu.json") {
                find_in_json(name, text, &mut found);
            }
        }
        found
    }
}

/// Import blocks for objects that are to be taken over. JSON, so that an address cannot become anything else; an id is
/// a template there, so its marks are escaped.
pub(super) fn write_adoptions(target: &Path, adoptions: &[crate::Adopt]) -> Result<(), EngineError> {
    let blocks: Vec<_> = adoptions
        .iter()
        .map(|a| serde_json::json!({"to": a.address, "id": a.id.replace("${", "$${").replace("%{", "%%{")}))
        .collect();
    let file = target.join(ADOPTIONS);
    std::fs::write(&file, serde_json::json!({ "import": blocks }).to_string()).map_err(|e| failed(&file, e))
}

fn read_into(files: &mut BTreeMap<PathBuf, Vec<u8>>, root: &Path, below: &Path) -> Result<(), EngineError> {
    let folder = root.join(below);
    for entry in std::fs::read_dir(&folder).map_err(|e| failed(&folder, e))? {
        let entry = entry.map_err(|e| failed(&folder, e))?;
        let (name, path) = (entry.file_name(), below.join(entry.file_name()));
        let at_root = below.as_os_str().is_empty();
        if at_root && LEFTOVERS.iter().any(|l| name == *l) {
            continue;
        }
        if at_root && name.as_encoded_bytes().starts_with(OURS.as_bytes()) {
            return Err(EngineError::Diagnostics(vec![Diagnostic::error(
                format!("The file name {} is reserved", name.display()),
                format!("Names that begin with {OURS} belong to the engine. Rename the file."),
            )]));
        }
        let kind = entry.file_type().map_err(|e| failed(&entry.path(), e))?;
        if kind.is_dir() {
            read_into(files, root, &path)?;
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).map_err(|e| failed(&entry.path(), e))?;
            files.insert(path, bytes);
        } else {
            return Err(EngineError::Diagnostics(vec![Diagnostic::error(
                format!("{} is neither a file nor a folder", path.display()),
                "A template consists of plain files and folders; links would lead out of it.",
            )]));
        }
    }
    Ok(())
}

fn find_in_hcl(name: &str, text: &str, found: &mut Vec<Diagnostic>) {
    let Ok(body) = text.parse::<Body>() else { return };
    let blocks = |body: &Body| body.iter().filter_map(Structure::as_block).cloned().collect::<Vec<_>>();
    for terraform in blocks(&body).iter().filter(|b| b.ident.as_str() == "terraform") {
        for block in blocks(&terraform.body) {
            let kind = block.ident.as_str();
            if kind == "backend" || kind == "cloud" {
                let line = block.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
                let range = SourceRange { file: name.to_owned(), line, column: 1, end: None };
                found.push(ignored(kind, Some(range)));
            }
        }
    }
}

fn find_in_json(name: &str, text: &str, found: &mut Vec<Diagnostic>) {
    let Ok(root) = serde_json::from_str::<serde_json::Value>(text) else { return };
    let terraform = root.get("terraform").cloned().unwrap_or_default();
    let blocks = terraform.as_array().cloned().unwrap_or_else(|| vec![terraform]);
    for kind in ["backend", "cloud"] {
        if blocks.iter().any(|b| b.get(kind).is_some()) {
            found.push(ignored(kind, Some(SourceRange { file: name.to_owned(), line: 1, column: 1, end: None })));
        }
    }
}

fn ignored(kind: &str, range: Option<SourceRange>) -> Diagnostic {
    Diagnostic {
        severity: Severity::Warning,
        summary: format!("The {kind} block is ignored"),
        detail: "Landform keeps the state itself, sealed and versioned.".to_owned(),
        address: None,
        range,
        seen: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn the_digest_tells_names_and_contents_apart_and_ignores_leftovers() {
        let digest = |files: &[(&str, &str)]| Folder::read(folder(files).path()).unwrap().digest;
        assert_eq!(digest(&[("a.tf", "x"), ("b.tf", "y")]), digest(&[("b.tf", "y"), ("a.tf", "x")]));
        assert_ne!(digest(&[("a.tf", "xb.tfy")]), digest(&[("a.tf", "x"), ("b.tf", "y")]));
        assert_eq!(digest(&[("a.tf", "x"), ("terraform.tfstate", "{}")]), digest(&[("a.tf", "x")]));
    }

    #[test]
    fn backends_are_found_with_their_line_in_both_syntaxes() {
        let dir = folder(&[
            ("a.tf", "# one\nterraform {\n  backend \"s3\" {}\n}\n"),
            ("b.tf.json", r#"{"terraform": {"cloud": {}}}"#),
            ("c.tf", "not hcl {"),
        ]);
        let found = Folder::read(dir.path()).unwrap().ignored_backends();
        let seen: Vec<_> =
            found.iter().map(|d| (d.summary.as_str(), d.range.as_ref().map(|r| (r.file.as_str(), r.line)))).collect();
        assert_eq!(
            seen,
            [
                ("The backend block is ignored", Some(("a.tf", 3))),
                ("The cloud block is ignored", Some(("b.tf.json", 1)))
            ]
        );
    }

    #[test]
    fn links_and_reserved_names_are_refused() {
        let dir = folder(&[]);
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("a.tf")).unwrap();
        assert!(matches!(Folder::read(dir.path()), Err(EngineError::Diagnostics(_))));
        let dir = folder(&[("zzzz_landform_override.tofu", "")]);
        assert!(matches!(Folder::read(dir.path()), Err(EngineError::Diagnostics(_))));
    }
}
