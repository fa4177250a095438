//! Threads that carry out runs, each with a runtime of its own.
//!
//! A run waits for something several hundred times: for the store, for a vendor, for a clock. A runtime of several threads
//! wakes two of them each time, one to go on and one to look whether there is more to do; and whichever takes the run up
//! finds its core's caches cold. Where there is little to do, that costs more than the work. So a run stays with one
//! thread, and a second one is used when the first has its share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle};

/// They live as long as the process: what a run leaves behind when it is given up (a turn at the store that is taken back,
/// a provider that is ended) goes on there.
static THREADS: OnceLock<Vec<Thread>> = OnceLock::new();

struct Thread {
    handle: Handle,
    runs: AtomicUsize,
}

/// A run's place at a thread.
pub(crate) struct Place(&'static Thread);

impl Place {
    /// At the first thread that has less than its share of so many runs.
    pub(crate) fn take(of: usize) -> Place {
        let threads = THREADS.get_or_init(start);
        let share = of.div_ceil(threads.len());
        let free = threads.iter().find(|thread| thread.runs.load(Ordering::Relaxed) < share);
        let thread = free.unwrap_or(&threads[0]);
        thread.runs.fetch_add(1, Ordering::Relaxed);
        Place(thread)
    }

    pub(crate) fn handle(&self) -> &'static Handle {
        &self.0.handle
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.runs.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start() -> Vec<Thread> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    (0..count).map(|_| thread().expect("a process may have threads")).collect()
}

fn thread() -> std::io::Result<Thread> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("runs".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(Thread { handle, runs: AtomicUsize::new(0) })
}
