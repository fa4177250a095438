use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

/// A running child. Dropping it kills its whole process group.
#[derive(Debug)]
pub struct Child {
    /// Also the number of its process group.
    pid: Pid,
    /// Readable when it has ended. It is there until the child was waited for, or is left to the runtime for that.
    end: Option<AsyncFd<OwnedFd>>,
    runtime: Handle,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
    register: Option<PathBuf>,
    stop_sent: bool,
    ended: Option<ExitStatus>,
}

impl Child {
    pub(super) fn new(pid: Pid, runtime: &Handle) -> io::Result<Child> {
        let mut child = Child {
            pid,
            end: None,
            runtime: runtime.clone(),
            stdin: None,
            stdout: None,
            stderr: None,
            register: None,
            stop_sent: false,
            ended: None,
        };
        child.end = Some(told_of_end(pid)?);
        Ok(child)
    }

    pub(super) fn registered_at(&mut self, path: PathBuf) {
        self.register = Some(path);
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// Asks the child itself (not its children) to stop, with SIGTERM. A second call does nothing: to the CLI a second
    /// signal means "now", and it would not save its state.
    pub fn stop(&mut self) -> io::Result<()> {
        if self.ended.is_some() || std::mem::replace(&mut self.stop_sent, true) {
            return Ok(());
        }
        match rustix::process::kill_process(self.pid, Signal::TERM) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the child's end; whatever is left of its group then is killed. Safe to cancel and to call again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        // A child that waits for the end of its input would wait for ever.
        self.stdin = None;
        let status = match &self.end {
            Some(end) => end_of(end).await?,
            None => return Err(lost()),
        };
        self.conclude(status);
        Ok(status)
    }

    /// The exit status, if the child has ended already.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            let end = self.end.as_ref().ok_or_else(lost)?;
            if let Some(status) = status_of(end)? {
                self.conclude(status);
            }
        }
        Ok(self.ended)
    }

    /// Kills the whole group and waits for the child's end.
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        if self.ended.is_none() {
            self.kill_group();
        }
        self.wait().await
    }

    fn conclude(&mut self, status: ExitStatus) {
        self.ended = Some(status);
        self.kill_group();
        self.unregister();
    }

    fn kill_group(&self) {
        // Fails only when nobody is left in the group, which is what was wanted.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }

    fn unregister(&mut self) {
        if let Some(path) = self.register.take() {
            // A file that stays behind costs the next sweep one look: the start time tells that the child is gone.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill_group();
            self.unregister();
            // The kernel keeps what is left of it until somebody has waited for it.
            match self.end.take() {
                Some(end) => drop(self.runtime.spawn(async move { end_of(&end).await })),
                // It was never told when it ends, and was killed just now.
                None => drop(rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty())),
            }
        }
    }
}

#[allow(unsafe_code, reason = "the runtime takes any descriptor, and wants to be promised that it stays open")]
fn told_of_end(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let end = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    // SAFETY: the descriptor is owned by what is registered, and is always the same.
    let told = unsafe { AsyncFd::register_with_interest(end, Interest::READABLE) };
    told.map_err(io::Error::from)
}

async fn end_of(end: &AsyncFd<OwnedFd>) -> io::Result<ExitStatus> {
    loop {
        let mut ready = end.readable().await?;
        if let Some(status) = status_of(end)? {
            return Ok(status);
        }
        ready.clear_ready();
    }
}

fn status_of(end: &AsyncFd<OwnedFd>) -> io::Result<Option<ExitStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(end.get_ref().as_fd()), options))?;
    Ok(status.map(|status| {
        let killed_by = status.terminating_signal().map(|signal| signal | if status.dumped() { 0x80 } else { 0 });
        ExitStatus::from_raw(killed_by.unwrap_or_else(|| status.exit_status().unwrap_or_default() << 8))
    }))
}

fn lost() -> io::Error {
    io::Error::other("nothing tells when the child ends")
}
