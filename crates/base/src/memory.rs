//! Memory, as the kernel counts it: what this machine has for us, and what processes take of it.

use std::fs;
use std::path::Path;

/// The highest that a process and everything it has started had in memory, in bytes: the sum over those that live now.
/// Pages that several share are counted for each, so it is rather too much than too little. 0 if nothing can be told.
pub fn peak_of_tree(pid: u32) -> u64 {
    let mut pending = vec![pid];
    let mut sum = 0;
    // A tree that grows while it is looked at must not hold us up.
    for _ in 0..MOST_PROCESSES {
        let Some(pid) = pending.pop() else { break };
        sum += peak(pid);
        pending.extend(children(pid));
    }
    sum
}

const MOST_PROCESSES: usize = 1_000;

/// The highest that one process had in memory, in bytes.
pub fn peak(pid: u32) -> u64 {
    of_status(pid, "VmHWM:")
}

/// What one process has in memory now, in bytes.
pub fn resident(pid: u32) -> u64 {
    of_status(pid, "VmRSS:")
}

fn of_status(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    in_kilobytes(&text, field).unwrap_or(0)
}

/// What a process has started and is still there, without what those have started.
pub fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// The memory that this process and its children may use: the machine's, or less where a control group says so.
pub fn limit() -> Option<u64> {
    let machine = in_kilobytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:");
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of_groups(Path::new("/sys/fs/cgroup"), &group).into_iter().chain(machine).min()
}

/// `memory.max` of the unified hierarchy, of our own group and of all above it; inside of a container the root is ours.
/// Or, on older systems, that of the memory controller.
fn limit_of_groups(root: &Path, own: &str) -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let unified = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let mut limits = Vec::new();
    for group in unified.iter().flat_map(|own| Path::new(own).ancestors()) {
        limits.extend(read(&root.join(group).join("memory.max")));
    }
    let controller = own.lines().find_map(|line| line.split_once(":memory:/").map(|(_, group)| group));
    for group in controller.iter().flat_map(|own| Path::new(own).ancestors()) {
        limits.extend(read(&root.join("memory").join(group).join("memory.limit_in_bytes")));
    }
    limits.into_iter().min()
}

fn in_kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_memory_of_all_its_processes() {
        let own = std::process::id();
        assert!(peak(own) >= resident(own) / 2 && resident(own) > 0);
        let shell = "sleep 60 & echo started; wait";
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", shell])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Its first word says that it has its own child.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 7]).unwrap();
        let (alone, all) = (peak(child.id()), peak_of_tree(child.id()));
        for pid in children(child.id()).into_iter().chain([child.id()]) {
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid as i32).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        child.wait().unwrap();
        assert!(alone > 0 && all > alone, "{alone} of {all}");
        assert_eq!(peak_of_tree(child.id()), 0, "it has ended");
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |own: &str| limit_of_groups(root.path(), own);
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "5000\n");
        write("memory.max", "7000\n");
        assert_eq!((limit("0::/a/b\n"), limit("0::/\n")), (Some(5000), Some(7000)));
        write("memory/x/memory.limit_in_bytes", "3000\n");
        assert_eq!(limit("4:memory:/x\n3:cpu:/\n"), Some(3000));
    }
}
