//! What providers take together with processes that they have started themselves.
//!
//! Few start any, and to look for them is dear: it means to look at each thread, and what the kernel keeps of that look must be
//! taken apart when the process ends. For a provider that lives for one run only that was a fifth of all CPU. So it is looked
//! for in some processes of a binary, and taken to be the same in the others.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use landform_base::memory;

/// The first process of a binary is looked at, and then one in so many.
const LOOK_EVERY: u32 = 32;

#[derive(Default)]
struct Offspring {
    asked: u32,
    bytes: u64,
}

/// The highest that a process of this binary had in memory, with all that it has started, in bytes.
pub(crate) fn peak(pid: u32, sha256: &str) -> u64 {
    static KNOWN: OnceLock<Mutex<HashMap<String, Offspring>>> = OnceLock::new();
    let own = memory::peak(pid);
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let offspring = known.entry(sha256.to_owned()).or_default();
    if offspring.asked.is_multiple_of(LOOK_EVERY) {
        offspring.bytes = memory::peak_of_tree(pid).saturating_sub(own);
    }
    offspring.asked = offspring.asked.wrapping_add(1);
    own + offspring.bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn what_a_process_has_started_counts_and_is_looked_for_now_and_then() {
        let shell = "sleep 60 & echo started; wait";
        let mut parent = Command::new("/bin/sh").args(["-c", shell]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let mut alone = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let with_child = peak(parent.id(), "of this test");
        assert!(with_child > memory::peak(parent.id()), "{with_child}");
        let own = memory::peak(alone.id());
        for _ in 1..LOOK_EVERY {
            assert!(peak(alone.id(), "of this test") > own, "as many as the first one has");
        }
        // It has only just begun, so its own part may still grow.
        let looked_again = peak(alone.id(), "of this test");
        assert!(looked_again <= memory::peak(alone.id()), "{looked_again}: it has started nothing");
        for child in memory::children(parent.id()) {
            let _ = Command::new("kill").arg(child.to_string()).status();
        }
        for process in [&mut parent, &mut alone] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}
