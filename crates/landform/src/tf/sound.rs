//! What is read of a folder for commands that need nothing but its state: where that is wrong, they end as in OpenTofu.

use std::collections::BTreeMap;
use std::path::Path;

use landform_engine::{EngineError, native};

use super::Failure;
use super::commands::{engine, open};
use super::options::Common;

/// Each file for itself, for a look at the state.
pub fn files(folder: &Path) -> Result<(), Failure> {
    Ok(native::check_files(folder)?)
}

/// The whole configuration with its modules, for a change of the state. OpenTofu then names files by all of their path.
pub fn whole(folder: &Path) -> Result<(), Failure> {
    native::check_variable_files(folder)?;
    let opened = open(folder, BTreeMap::new(), None)?;
    engine(folder, &Common::default()).check_configuration(&opened.workspace).map_err(|error| match error {
        EngineError::Diagnostics(mut found) => {
            for one in &mut found {
                one.detail = with_whole_paths(&one.detail, folder);
                if let Some(range) = &mut one.range {
                    range.file = folder.join(&range.file).display().to_string();
                }
            }
            EngineError::Diagnostics(found).into()
        }
        other => other.into(),
    })
}

/// A text that may say of something that it is `at FILE:LINE`.
fn with_whole_paths(text: &str, folder: &Path) -> String {
    let mut parts = text.split(" at ");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let place = part.split_once(':').filter(|(file, line)| {
            !file.contains(char::is_whitespace) && line.starts_with(|first: char| first.is_ascii_digit())
        });
        whole.push_str(" at ");
        match place {
            Some((file, rest)) => whole.push_str(&format!("{}:{rest}", folder.join(file).display())),
            None => whole.push_str(part),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::with_whole_paths;

    #[test]
    fn places_are_named_by_all_of_their_path() {
        let folder = std::path::Path::new("/f");
        let text = "Declared at m/main.tf:1,2-3. At most one at a time: so.";
        assert_eq!(with_whole_paths(text, folder), "Declared at /f/m/main.tf:1,2-3. At most one at a time: so.");
    }
}
