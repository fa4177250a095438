use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use landform_lang::{Diagnostics, Tree};

/// More than this are configurations that come and go: then they are read again.
const MOST: usize = 64;

/// Reads configurations; and where a folder never changes under its name, each of them once.
#[derive(Default)]
pub struct Trees {
    /// None: folders may change at any time.
    fixed: Option<Mutex<HashMap<PathBuf, Arc<Tree>>>>,
}

impl Trees {
    pub fn of_fixed_folders() -> Trees {
        Trees { fixed: Some(Mutex::default()) }
    }

    /// What is wrong with a configuration is found out anew each time.
    pub fn load(&self, folder: &Path) -> Result<Tree, Diagnostics> {
        let Some(fixed) = &self.fixed else { return Tree::load(folder) };
        let known = fixed.lock().unwrap_or_else(PoisonError::into_inner).get(folder).cloned();
        if let Some(tree) = known {
            return Ok((*tree).clone());
        }
        let tree = Tree::load(folder)?;
        let mut known = fixed.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(folder.to_owned(), Arc::new(tree.clone()));
        Ok(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_folder_is_read_once_and_any_other_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let (fixed, open) = (Trees::of_fixed_folders(), Trees::default());
        let write = |text: &str| std::fs::write(folder.path().join("main.tf"), text).unwrap();
        let outputs = |trees: &Trees| trees.load(folder.path()).unwrap().module.outputs.len();
        write("output \"a\" {");
        assert!(fixed.load(folder.path()).is_err());
        write("output \"a\" {\n  value = 1\n}\n");
        assert_eq!((outputs(&fixed), outputs(&open)), (1, 1));
        write("");
        assert_eq!((outputs(&fixed), outputs(&open)), (1, 0));
    }
}
