use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::constant::not_constant;
use crate::load::{KeptFiles, load_as};
use crate::{Diagnostic, Diagnostics, Module, Unsupported};

/// How deep modules may be nested; more is a module that calls itself.
const MAX_DEPTH: usize = 20;

/// A module with the modules that it calls, and so on.
#[derive(Clone, Debug)]
pub struct Tree {
    pub module: Module,
    /// Where its files are, as seen from the root module: empty, or `modules/net`.
    pub place: String,
    pub children: BTreeMap<String, Tree>,
}

impl Tree {
    /// Loads the module of a folder and all local modules below it. An error means that something in it is wrong; what is
    /// only outside of the subset is in [`Tree::unsupported`].
    pub fn load(folder: &Path) -> Result<Tree, Diagnostics> {
        Tree::load_at(folder, Path::new(""), None, 0)
    }

    /// The same of files that were kept ([`Module::files`]): what else the configuration reads is still in the folder.
    pub fn load_kept(folder: &Path, kept: &KeptFiles) -> Result<Tree, Diagnostics> {
        Tree::load_at(folder, Path::new(""), Some(kept), 0)
    }

    fn load_at(root: &Path, place: &Path, kept: Option<&KeptFiles>, depth: usize) -> Result<Tree, Diagnostics> {
        let shown = place.to_string_lossy().replace('\\', "/");
        let prefix = if shown.is_empty() { String::new() } else { format!("{shown}/") };
        let module = load_as(&root.join(place), &prefix, kept)?;
        let mut children = BTreeMap::new();
        let mut found = Vec::new();
        for call in module.calls.values().filter(|call| call.source.starts_with('.')) {
            let inner = normal(&place.join(&call.source));
            if depth == MAX_DEPTH {
                let detail = format!("The module {:?} is nested more than {MAX_DEPTH} deep.", call.name);
                return Err(Diagnostic::new("Module cycle", detail).at(call.range.clone()).into());
            }
            if kept.is_none() && !root.join(&inner).is_dir() {
                let detail = format!("Unable to evaluate directory symlink: {} does not exist.", call.source);
                found.push(Diagnostic::new("Unreadable module directory", detail).at(call.range.clone()));
                continue;
            }
            match Tree::load_at(root, &inner, kept, depth + 1) {
                Ok(child) => drop(children.insert(call.name.clone(), child)),
                Err(diagnostics) => found.extend(diagnostics),
            }
        }
        Diagnostics::check(found)?;
        Ok(Tree { module, place: shown, children })
    }

    /// What in the whole tree is not done here exactly as OpenTofu does it.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let all = self.all().into_iter().flat_map(|tree| tree.module.unsupported.iter().cloned());
        all.chain(not_constant(self, &HashSet::new())).collect()
    }

    /// This module and all below it.
    pub fn all(&self) -> Vec<&Tree> {
        std::iter::once(self).chain(self.children.values().flat_map(Tree::all)).collect()
    }
}

/// A path without `.` and, where that can be told, without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
