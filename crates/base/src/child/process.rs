use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

/// A running child. Dropping it kills its whole process group.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    /// Also the number of its process group.
    pid: Pid,
    register: Option<PathBuf>,
    stop_sent: bool,
    ended: Option<ExitStatus>,
}

impl Child {
    pub(super) fn new(inner: tokio::process::Child) -> io::Result<Child> {
        let pid = inner.id().and_then(|id| Pid::from_raw(id as i32));
        let pid = pid.ok_or_else(|| io::Error::other("a child that was just started has no process id"))?;
        Ok(Child { inner, pid, register: None, stop_sent: false, ended: None })
    }

    pub(super) fn registered_at(&mut self, path: PathBuf) {
        self.register = Some(path);
    }

    pub(super) fn answer_through(&mut self, stdin: ChildStdin) {
        self.inner.stdin = Some(stdin);
    }

    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.inner.stderr.take()
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
        let status = self.inner.wait().await?;
        self.conclude(status);
        Ok(status)
    }

    /// The exit status, if the child has ended already.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none()
            && let Some(status) = self.inner.try_wait()?
        {
            self.conclude(status);
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
            // The runtime reaps it later.
            self.kill_group();
            self.unregister();
        }
    }
}
