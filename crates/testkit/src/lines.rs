//! Files of JSON lines that processes append to while they may be killed at any moment.
//!
//! A torn line is something that did not happen.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Synced before it returns. The line break in front keeps a torn line from swallowing this one.
pub fn append(path: &Path, entry: &impl Serialize) -> io::Result<()> {
    let mut file: File = OpenOptions::new().append(true).create(true).open(path)?;
    let line = format!("\n{}\n", serde_json::to_string(entry)?);
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

/// The entries, and how many lines are torn. A file that does not exist is empty.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<(Vec<T>, usize)> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    let (mut entries, mut torn) = (Vec::new(), 0);
    for line in text.lines().filter(|line| !line.is_empty()) {
        match serde_json::from_str(line) {
            Ok(entry) => entries.push(entry),
            Err(_) => torn += 1,
        }
    }
    Ok((entries, torn))
}
