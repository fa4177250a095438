//! What every benchmark needs: percentiles, the disk's and the processes' own figures.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Times in ascending order.
pub struct Times(Vec<Duration>);

impl Times {
    pub fn new(mut times: Vec<Duration>) -> Times {
        times.sort();
        Times(times)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In milliseconds; `share` is between 0 and 1. Zero if nothing was measured.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (self.0.len() as f64 * share) as usize;
        self.0.get(at.min(last)).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// CPU time of the process and of all its children that have ended.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let behind_name = text.rsplit_once(')').context("/proc/PID/stat has a name")?.1;
    let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
    let ticks: f64 = fields[11..15].iter().map(|field| field.parse::<f64>().unwrap_or_default()).sum();
    // The kernel's unit here is a hundredth of a second on every Linux that matters.
    Ok(ticks / 100.0)
}

/// The same, with the children that still live and all that they have started.
pub fn cpu_seconds_of_tree(pid: u32) -> f64 {
    let mut pending = vec![pid];
    let mut sum = 0.0;
    while let Some(pid) = pending.pop() {
        // Whoever has ended since it was listed is in its parent's sum by the next look.
        sum += cpu_seconds(pid).unwrap_or_default();
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            pending.extend(list.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    sum
}

/// Memory that the process has in use, in MB.
pub fn resident_mb(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}

/// The median of flushing 4 KiB to the disk that temporary files are on, in milliseconds.
pub fn fsync_millis() -> Result<f64> {
    let mut file = tempfile::tempfile()?;
    let mut times = Vec::new();
    for _ in 0..50 {
        file.write_all(&[7; 4096])?;
        let begin = Instant::now();
        file.sync_all()?;
        times.push(begin.elapsed());
    }
    Ok(Times::new(times).percentile(0.5))
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let times = Times::new((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(times.percentile(0.5), 51.0);
        assert_eq!(times.percentile(0.99), 100.0);
        assert_eq!(Times::new(Vec::new()).percentile(0.5), 0.0);
    }

    #[test]
    fn a_process_has_time_and_memory() {
        let own = std::process::id();
        assert!(cpu_seconds(own).unwrap() >= 0.0);
        assert!(cpu_seconds_of_tree(own) >= cpu_seconds(own).unwrap());
        assert!(resident_mb(own).unwrap() > 0.5);
    }
}
