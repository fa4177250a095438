//! What was sent before this process began: a vendor's windows do not end with a worker. One line is written before each
//! call that a window counts. It is not forced to disk: after a power cut, windows begin anew.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::budget::Window;
use crate::counts::lock;

/// Beyond this the file is written anew without what no window sees any more.
const LARGE: u64 = 8 << 20;

#[derive(Default)]
pub(crate) struct Past {
    book: Mutex<Option<Book>>,
    /// By account.
    found: HashMap<String, Vec<Found>>,
}

/// An operation, when it counts as ended, and the length of the longest window that sees it.
type Found = (String, Instant, Duration);

struct Book {
    path: PathBuf,
    file: File,
    size: u64,
}

struct Line<'a> {
    at: Duration,
    longest: Duration,
    account: &'a str,
    operations: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Option<Line<'a>> {
        let mut words = text.split(' ');
        let at = Duration::from_millis(words.next()?.parse().ok()?);
        let longest = Duration::from_secs(words.next()?.parse().ok()?);
        Some(Line { at, longest, account: words.next()?, operations: words.collect() })
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The lines that still count. One that was torn by a crash is left out: its call was not sent yet.
fn still_counting(text: &str) -> impl Iterator<Item = (&str, Line<'_>)> {
    let now = now();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let lines = lines.filter_map(|line| Some((line, Line::read(line.trim_end())?)));
    lines.filter(move |(_, line)| line.at + line.longest + ANSWER > now)
}

/// When the answer came is not written down. It is taken to have come so late, or at the end of the process.
const ANSWER: Duration = Duration::from_secs(60);

impl Past {
    pub(crate) fn open(path: &Path) -> io::Result<Past> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let (moment, now) = (Instant::now(), now());
        let mut found: HashMap<String, Vec<Found>> = HashMap::new();
        for (_, line) in still_counting(&text) {
            let age = now.saturating_sub(line.at + ANSWER);
            let Some(ended) = moment.checked_sub(age) else { continue };
            let calls = found.entry(line.account.to_owned()).or_default();
            calls.extend(line.operations.iter().map(|operation| ((*operation).to_owned(), ended, line.longest)));
        }
        Ok(Past { book: Mutex::new(Some(Book::begin(path, &text)?)), found })
    }

    pub(crate) fn of(&self, account: &str) -> &[Found] {
        self.found.get(account).map(Vec::as_slice).unwrap_or_default()
    }

    /// Before a call is sent. A disk that does not take it holds nobody up: the windows of this process are in memory.
    pub(crate) fn write(&self, account: &str, operations: &[(String, Vec<Window>)]) {
        let windows = operations.iter().flat_map(|(_, windows)| windows);
        let Some(longest) = windows.map(|window| window.length.as_secs()).max() else { return };
        let counted = operations.iter().filter(|(_, windows)| !windows.is_empty());
        let names: Vec<&str> = counted.map(|(operation, _)| operation.as_str()).collect();
        self.add(&format!("{} {longest} {account} {}\n", now().as_millis(), names.join(" ")));
    }

    /// A call of the account's last owner, so long ago.
    pub(crate) fn inherit(&self, account: &str, operation: &str, longest: Duration, age: Duration) {
        // Reading adds the longest time that an answer takes.
        let at = now().saturating_sub(age + ANSWER);
        self.add(&format!("{} {} {account} {operation}\n", at.as_millis(), longest.as_secs()));
    }

    fn add(&self, line: &str) {
        let mut book = lock(&self.book);
        let written = book.as_mut().map(|book| book.write(line));
        if let Some(Err(error)) = written {
            tracing::warn!(%error, "what is sent to vendors can no longer be written down; a restart will not know of it");
            *book = None;
        }
    }
}

impl Book {
    fn begin(path: &Path, text: &str) -> io::Result<Book> {
        let kept: String = still_counting(text).map(|(line, _)| line).collect();
        let folder = path.parent().unwrap_or(Path::new("."));
        landform_base::file::private_folder(folder)?;
        landform_base::file::write_private(path, kept.as_bytes())?;
        let file = File::options().append(true).open(path)?;
        Ok(Book { path: path.to_owned(), file, size: kept.len() as u64 })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.size > LARGE {
            let text = std::fs::read_to_string(&self.path)?;
            *self = Book::begin(&self.path, &text)?;
        }
        self.file.write_all(line.as_bytes())?;
        self.size += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_window_still_sees_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/calls");
        let minute = vec![Window { calls: 1, length: Duration::from_secs(60) }];
        let past = Past::open(&path).unwrap();
        past.write("v:1", &[("look".to_owned(), minute), ("free".to_owned(), Vec::new())]);
        past.write("v:1", &[("free".to_owned(), Vec::new())]);
        let mut file = File::options().append(true).open(&path).unwrap();
        // One from long ago, and one that was torn.
        file.write_all(b"1000 60 v:1 look\n1000000000000000 60 v:1 lo").unwrap();
        let again = Past::open(&path).unwrap();
        let found: Vec<&str> = again.of("v:1").iter().map(|(operation, ..)| operation.as_str()).collect();
        assert_eq!(found, ["look"]);
        assert!(again.of("v:2").is_empty());
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
