use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::mpsc;

use rustix::process::Signal;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::process::Child;
use super::register::{self, Registered};
use crate::confine::Confinement;

/// How to start a child. Its environment is empty but for what is named here.
#[derive(Debug)]
pub struct Spec {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Set for the child.
    pub environment: BTreeMap<OsString, OsString>,
    /// Handed down from our own environment, where they are set.
    pub inherit: Vec<OsString>,
    pub folder: Option<PathBuf>,
    pub stdin: Stream,
    pub stdout: Stream,
    pub stderr: Stream,
    pub on_parent_death: OnParentDeath,
    /// The folder in which the child is registered while it lives, for [`super::sweep`].
    pub register: Option<PathBuf>,
    /// A folder that is of no use without the child; after a crash of ours the sweep takes it away.
    pub belongings: Option<PathBuf>,
    /// What it may see of the file system; `None` is everything that we see.
    pub confine: Option<Confinement>,
}

impl Spec {
    /// No arguments, no environment, no input or output, killed with its parent.
    pub fn new(program: impl Into<PathBuf>) -> Spec {
        Spec {
            program: program.into(),
            args: Vec::new(),
            environment: BTreeMap::new(),
            inherit: Vec::new(),
            folder: None,
            stdin: Stream::Null,
            stdout: Stream::Null,
            stderr: Stream::Null,
            on_parent_death: OnParentDeath::Kill,
            register: None,
            belongings: None,
            confine: None,
        }
    }
}

#[derive(Debug)]
pub enum Stream {
    Null,
    Piped,
    Inherit,
    File(std::fs::File),
}

impl From<Stream> for Stdio {
    fn from(stream: Stream) -> Stdio {
        match stream {
            Stream::Null => Stdio::null(),
            Stream::Piped => Stdio::piped(),
            Stream::Inherit => Stdio::inherit(),
            Stream::File(file) => file.into(),
        }
    }
}

/// What the kernel tells the child when this process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnParentDeath {
    /// SIGKILL: for a child that has nothing to save.
    Kill,
    /// SIGTERM, exactly one: for a child that then saves its state, such as the CLI.
    ///
    /// The kernel sends the signal each time a thread of ours dies that the child has been handed on to, so a dying
    /// process sends several, and to the CLI the second one means "now, without saving". A shell stands between that
    /// passes on the first and ignores the rest.
    Terminate,
}

impl OnParentDeath {
    fn signal(self) -> Signal {
        match self {
            OnParentDeath::Kill => Signal::KILL,
            OnParentDeath::Terminate => Signal::TERM,
        }
    }
}

/// Starts a child in a process group of its own.
pub async fn spawn(spec: Spec) -> io::Result<Child> {
    let (reply, answer) = oneshot::channel();
    let request = Request { spec, runtime: Handle::current(), reply };
    spawner()?.send(request).map_err(|_| ended())?;
    answer.await.map_err(|_| ended())?
}

fn ended() -> io::Error {
    io::Error::other("the thread that spawns children has ended")
}

struct Request {
    spec: Spec,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// The thread that spawns. Its sender is never dropped, so it ends with the process and not before.
fn spawner() -> io::Result<&'static mpsc::Sender<Request>> {
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender);
    }
    let (sender, requests) = mpsc::channel::<Request>();
    std::thread::Builder::new().name("spawner".into()).spawn(move || {
        for request in requests {
            let _runtime = request.runtime.enter();
            let result = spawn_here(request.spec);
            // Nobody waits any more: the child is dropped here, and with it its group is killed.
            let _ = request.reply.send(result);
        }
    })?;
    // Of two first callers one thread stays; the other ends at once, before it has spawned anything.
    Ok(SPAWNER.get_or_init(|| sender))
}

/// Runs its arguments and ends as they end; `wait` is repeated because a signal interrupts it.
///
/// It begins only when it is told to on its standard input. Whoever dies before the child is registered has closed
/// that pipe, and nothing begins: a program that nobody can find again must not run. What is left of the input belongs
/// to the program: a shell reads a pipe byte by byte and takes no more than its line. It is handed on by number,
/// because a shell gives what it starts in the background an empty input.
/// A signal is trapped, never ignored: the program would inherit that, and run on as if nobody had asked.
/// Between fork and the moment in which the new process has taken off the traps of this one, a signal to it would be
/// noted there and forgotten: it says by SIGUSR1 that it is past that, and is told only then.
pub(super) const PASS_ON_ONE_SIGNAL: &str = r#"
child= begun= asked= told=
tell() {
    test -n "$child" && test -n "$begun" && test -n "$asked" && test -z "$told" || return 0
    told=yes
    kill -TERM "$child"
}
trap 'asked=yes; tell' TERM
trap 'begun=yes; tell' USR1
read -r go || exit 143
test -z "$asked" || exit 143
exec 3<&0
{ kill -USR1 "$$"; exec "$@" <&3 3<&-; } &
child=$!
exec 3<&- </dev/null
tell
wait "$child"
status=$?
while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
done
exit "$status"
"#;

fn command_of(spec: &Spec) -> io::Result<tokio::process::Command> {
    match spec.on_parent_death {
        OnParentDeath::Kill => Ok(tokio::process::Command::new(&spec.program)),
        OnParentDeath::Terminate => {
            // The shell would report this as an exit status like any other.
            std::fs::metadata(&spec.program)?;
            let mut command = tokio::process::Command::new("/bin/sh");
            command.args(["-c", PASS_ON_ONE_SIGNAL, "sh"]).arg(&spec.program);
            Ok(command)
        }
    }
}

fn spawn_here(spec: Spec) -> io::Result<Child> {
    let mut command = command_of(&spec)?;
    command.args(&spec.args).env_clear();
    for name in &spec.inherit {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(&spec.environment);
    if let Some(folder) = &spec.folder {
        command.current_dir(folder);
    }
    let gated = spec.on_parent_death == OnParentDeath::Terminate;
    let asks = matches!(spec.stdin, Stream::Piped);
    let stdin = if gated { Stream::Piped } else { spec.stdin };
    command.stdin(stdin).stdout(spec.stdout).stderr(spec.stderr);
    command.process_group(0);
    if let Some(confinement) = &spec.confine {
        confine(&mut command, confinement)?;
    }
    die_with_parent(&mut command, spec.on_parent_death.signal());
    let mut inner = command.spawn()?;
    let gate = inner.stdin.take_if(|_| gated);
    let mut child = Child::new(inner)?;
    if let Some(folder) = &spec.register {
        let mut entry = Registered::of(child.id(), spec.on_parent_death == OnParentDeath::Terminate)?;
        entry.belongings = spec.belongings;
        child.registered_at(register::write(folder, &entry)?);
    }
    if let Some(gate) = gate {
        let mut gate = std::fs::File::from(gate.into_owned_fd()?);
        gate.write_all(b"go\n")?;
        if asks {
            let input = std::process::ChildStdin::from(std::os::fd::OwnedFd::from(gate));
            child.answer_through(tokio::process::ChildStdin::from_std(input)?);
        }
    }
    Ok(child)
}

#[allow(unsafe_code, reason = "a child can only confine itself, between fork and exec")]
fn confine(command: &mut tokio::process::Command, confinement: &Confinement) -> io::Result<()> {
    let mut ruleset = Some(confinement.ruleset()?);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The rules were made by the parent; the
    // closure takes them out of an option, makes two system calls (prctl and landlock_restrict_self) and closes a file
    // descriptor. On success it neither allocates nor takes a lock; on failure it returns a bare error number.
    unsafe {
        command.pre_exec(move || match ruleset.take().map(landlock::RulesetCreated::restrict_self) {
            Some(Ok(_)) => Ok(()),
            _ => Err(rustix::io::Errno::PERM.into()),
        });
    }
    Ok(())
}

#[allow(unsafe_code, reason = "the parent-death signal can only be asked for between fork and exec")]
fn die_with_parent(command: &mut tokio::process::Command, signal: Signal) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes two system calls
    // directly (prctl and getppid, through rustix, without libc's locks), compares two integers, and neither
    // allocates nor takes a lock; the error it may return is a bare error number.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The parent may have died before the request above: then the signal never comes.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            Ok(())
        });
    }
}
