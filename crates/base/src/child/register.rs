use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What identifies a child after a crash: process ids are used again, but not with the same start time in one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registered {
    pub(super) pid: u32,
    pub(super) group: u32,
    /// In the kernel's ticks since boot.
    pub(super) start_time: u64,
    pub(super) boot: String,
    /// The kernel asked it to stop when its parent died; it deserves time to do so.
    pub(super) stops_by_itself: bool,
    /// A folder that goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) belongings: Option<PathBuf>,
}

impl Registered {
    pub(super) fn of(pid: u32, stops_by_itself: bool) -> io::Result<Registered> {
        let stat = Stat::read(pid)?;
        let (start_time, boot) = (stat.start_time, boot_id()?);
        Ok(Registered { pid, group: pid, start_time, boot, stops_by_itself, belongings: None })
    }
}

pub(super) fn write(folder: &Path, entry: &Registered) -> io::Result<PathBuf> {
    crate::file::private_folder(folder)?;
    let path = folder.join(format!("{}-{}.child", entry.pid, entry.start_time));
    // Not synced: the file is of use only as long as this boot lasts, and then the page cache is there too.
    fs::write(&path, serde_json::to_vec(entry)?)?;
    Ok(path)
}

pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The few fields of `/proc/PID/stat` that matter here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    pub(super) state: char,
    pub(super) group: u32,
    pub(super) start_time: u64,
}

impl Stat {
    pub(super) fn read(pid: u32) -> io::Result<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Stat::parse(&text).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not as expected")))
    }

    /// The second field is the program's name in parentheses and may hold anything, so parsing starts behind the last
    /// parenthesis.
    fn parse(text: &str) -> Option<Stat> {
        let rest = &text[text.rfind(')')? + 1..];
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            group: fields.get(2)?.parse().ok()?,
            start_time: fields.get(19)?.parse().ok()?,
        })
    }

    /// A zombie has ended; its parent has just not been told.
    pub(super) fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let text = "42 (a) b (c) S 1 40 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 1";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.group, stat.start_time), ('S', 40, 987654));
        assert!(Stat::parse("nonsense").is_none());
    }
}
