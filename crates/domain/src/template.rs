//! A template's files: what is pushed, kept and unpacked for a run.

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::{Code, Problem};

pub const MOST_FILES: usize = 1_000;
/// Which providers a template uses, exactly.
pub const LOCK_FILE: &str = ".terraform.lock.hcl";

pub const LARGEST_FILE: usize = 4 * 1024 * 1024;
pub const LARGEST_TOTAL: usize = 16 * 1024 * 1024;
const LONGEST_PATH: usize = 512;
const LONGEST_COMPONENT: usize = 200;

/// A validated set of relative paths with their contents. Every path can be joined to a folder and stays inside it.
#[derive(Clone, PartialEq, Eq)]
pub struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Files, Problem> {
        let mut map: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut total = 0;
        for (path, content) in files {
            check_path(&path)?;
            total += content.len();
            if content.len() > LARGEST_FILE || total > LARGEST_TOTAL || map.len() == MOST_FILES {
                return Err(Problem::new(
                    Code::TemplateTooLarge,
                    format!(
                        "a template has at most {MOST_FILES} files, {LARGEST_FILE} bytes each and {LARGEST_TOTAL} in all"
                    ),
                ));
            }
            if map.insert(path.clone(), content).is_some() {
                return Err(invalid(format!("{path:?} occurs twice")));
            }
        }
        for path in map.keys() {
            let mut folder = path.as_str();
            while let Some(at) = folder.rfind('/') {
                folder = &folder[..at];
                if map.contains_key(folder) {
                    return Err(invalid(format!("{folder:?} is both a file and a folder")));
                }
            }
        }
        if !map.keys().any(|path| is_root_configuration(path)) {
            return Err(invalid("there is no `.tf` file at its top".into()));
        }
        Ok(Files(map))
    }

    /// The same with one more file, or another one of that name.
    pub fn with(&self, path: &str, content: Vec<u8>) -> Result<Files, Problem> {
        let mut map = self.0.clone();
        map.insert(path.to_owned(), content);
        Files::new(map)
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// The same for the same files, on any machine and in any version of Landform.
    pub fn digest(&self) -> TemplateDigest {
        let mut hash = Sha256::new();
        for (path, content) in &self.0 {
            for part in [path.as_bytes(), content] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        TemplateDigest(hex)
    }

    /// One block of bytes, for keeping.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, content) in &self.0 {
            for part in [path.as_bytes(), content] {
                bytes.extend_from_slice(&(part.len() as u32).to_be_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    pub fn decode(mut bytes: &[u8]) -> Result<Files, Problem> {
        let mut next = || -> Option<Vec<u8>> {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            bytes = rest;
            Some(part.to_vec())
        };
        let mut files = Vec::new();
        while let Some(path) = next() {
            let damaged = || invalid("the stored files are damaged".into());
            let content = next().ok_or_else(damaged)?;
            files.push((String::from_utf8(path).map_err(|_| damaged())?, content));
        }
        Files::new(files)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// SHA-256 over paths and contents, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateDigest(String);

impl TemplateDigest {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Code::TemplateInvalid, message)
}

fn is_root_configuration(path: &str) -> bool {
    !path.contains('/') && [".tf", ".tf.json", ".tofu", ".tofu.json"].iter().any(|end| path.ends_with(end))
}

fn check_path(path: &str) -> Result<(), Problem> {
    let component_is_fine = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.len() <= LONGEST_COMPONENT
            && !part.chars().any(|c| c.is_control() || c == '\\')
    };
    if path.len() > LONGEST_PATH || !path.split('/').all(component_is_fine) {
        let shown: String = path.chars().take(80).collect();
        return Err(invalid(format!("{shown:?} is no relative path that can be kept")));
    }
    // What `init` writes there depends on the machine, and a state in a template would compete with the real one.
    let first = path.split('/').next().unwrap_or_default();
    if first == ".terraform" || path == "terraform.tfstate" {
        return Err(invalid(format!("{path:?} is written by the CLI and does not belong into a template")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> Result<Files, Problem> {
        Files::new(list.iter().map(|(path, content)| (path.to_string(), content.as_bytes().to_vec())))
    }

    #[test]
    fn refuses_paths_that_leave_the_folder() {
        for bad in ["/etc/passwd", "../x.tf", "a/../b.tf", "a//b.tf", "./a.tf", "a/", "", "a\\b.tf", "a\0.tf", "a\n.tf"]
        {
            let problem = files(&[("main.tf", ""), (bad, "")]).unwrap_err();
            assert_eq!(problem.code, Code::TemplateInvalid, "{bad:?}");
        }
        assert!(files(&[("main.tf", ""), (".terraform/x", "")]).is_err());
        assert!(files(&[("main.tf", ""), ("a", ""), ("a/b", "")]).is_err());
        assert!(files(&[("main.tf", ""), ("main.tf", "")]).is_err());
        assert!(files(&[("sub/main.tf", "")]).is_err(), "no configuration at the top");
        assert!(files(&[("main.tf.json", "{}"), ("modules/a/main.tf", ""), (".terraform.lock.hcl", "")]).is_ok());
    }

    #[test]
    fn refuses_too_much() {
        let many = (0..=MOST_FILES).map(|i| (format!("{i}.tf"), Vec::new()));
        assert_eq!(Files::new(many).unwrap_err().code, Code::TemplateTooLarge);
        let large = [("main.tf".to_string(), vec![0; LARGEST_FILE + 1])];
        assert_eq!(Files::new(large).unwrap_err().code, Code::TemplateTooLarge);
    }

    #[test]
    fn the_digest_depends_on_every_path_and_byte() {
        let a = files(&[("a.tf", "x"), ("b.tf", "y")]).unwrap();
        assert_eq!(a.digest(), files(&[("b.tf", "y"), ("a.tf", "x")]).unwrap().digest());
        assert_ne!(a.digest(), files(&[("a.tf", "x"), ("b.tf", "z")]).unwrap().digest());
        assert_ne!(a.digest(), files(&[("a.tf", "xb.tf"), ("c.tf", "y")]).unwrap().digest());
        // Written down, so that a change of the scheme is noticed.
        let known = files(&[("main.tf", "")]).unwrap();
        assert_eq!(known.digest().as_str().len(), 64);
        assert_eq!(Files::decode(&a.encode()).unwrap(), a);
        assert!(Files::decode(&a.encode()[..9]).is_err());
    }
}
