use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::time::Instant;

use super::register::{Registered, Stat, boot_id};

/// One leftover of a process that died, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    pub pid: u32,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    AlreadyGone,
    /// It had been asked to stop, and did so within the time it was given.
    Stopped,
    Killed,
}

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends what an earlier process left behind in `folder`. Groups that the kernel has asked to stop get up to `grace` to
/// do so; everything else is killed at once. Returns when all of them are gone.
///
/// The caller must hold whatever lock makes it the only owner of the folder.
pub async fn sweep(folder: &Path, grace: Duration) -> io::Result<Vec<Swept>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let boot = boot_id()?;
    let deadline = Instant::now() + grace;
    let mut swept = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "child") {
            continue;
        }
        // A torn file was written in the moment of the crash; its child has the parent-death signal all the same.
        if let Ok(entry) = serde_json::from_slice::<Registered>(&fs::read(&path)?) {
            let outcome = if entry.boot == boot { end(&entry, deadline).await? } else { Outcome::AlreadyGone };
            swept.push(Swept { pid: entry.pid, outcome });
            if let Some(folder) = &entry.belongings
                && let Err(error) = fs::remove_dir_all(folder)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, folder = %folder.display(), "what a child left behind could not be removed");
            }
        }
        fs::remove_file(&path)?;
    }
    Ok(swept)
}

async fn end(entry: &Registered, deadline: Instant) -> io::Result<Outcome> {
    if !group_lives(entry)? {
        return Ok(Outcome::AlreadyGone);
    }
    if entry.stops_by_itself {
        while Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            if !leader_lives(entry) {
                break;
            }
        }
        if !group_lives(entry)? {
            return Ok(Outcome::Stopped);
        }
    }
    let stopped = entry.stops_by_itself && !leader_lives(entry);
    let group = Pid::from_raw(entry.group as i32).ok_or_else(|| io::Error::other("process group 0"))?;
    loop {
        match rustix::process::kill_process_group(group, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
        if !group_lives(entry)? {
            return Ok(if stopped { Outcome::Stopped } else { Outcome::Killed });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn leader_lives(entry: &Registered) -> bool {
    Stat::read(entry.pid).is_ok_and(|stat| stat.start_time == entry.start_time && stat.alive())
}

/// Whether anyone of the registered group is alive. While one is, the kernel gives its number to nobody else; if all
/// had gone and the number were in use again, its leader would have another start time.
fn group_lives(entry: &Registered) -> io::Result<bool> {
    if let Ok(leader) = Stat::read(entry.pid)
        && leader.start_time != entry.start_time
    {
        return Ok(false);
    }
    for process in fs::read_dir("/proc")? {
        let Some(pid) = process?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process may end while it is looked at.
        let Ok(stat) = Stat::read(pid) else { continue };
        if stat.group == entry.group && stat.alive() && stat.start_time >= entry.start_time {
            return Ok(true);
        }
    }
    Ok(false)
}
