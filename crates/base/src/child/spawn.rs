use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc;

use rustix::process::Signal;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::process::Child;
use super::register::{self, Registered};
use super::start::Birth;
use crate::confine::Confinement;

/// How to start a child. Its environment is empty but for what is named here.
#[derive(Debug)]
pub struct Spec {
    /// A path; it is not searched for.
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
    File(File),
}

impl Stream {
    /// What the child reads from, and our end of it if it is a pipe.
    fn input(self) -> io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
        let Stream::Piped = self else { return Ok((self.without_pipe(File::options().read(true))?, None)) };
        let (theirs, ours) = io::pipe()?;
        Ok((Some(theirs.into()), Some(ours.into())))
    }

    /// What the child writes to, and our end of it if it is a pipe.
    fn output(self) -> io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
        let Stream::Piped = self else { return Ok((self.without_pipe(File::options().write(true))?, None)) };
        let (ours, theirs) = io::pipe()?;
        Ok((Some(theirs.into()), Some(ours.into())))
    }

    fn without_pipe(self, null: &OpenOptions) -> io::Result<Option<OwnedFd>> {
        match self {
            Stream::Null => Ok(Some(null.open("/dev/null")?.into())),
            Stream::File(file) => Ok(Some(file.into())),
            Stream::Inherit | Stream::Piped => Ok(None),
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
            let result = spawn_here(request.spec, &request.runtime);
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

/// The program to start, and its arguments.
fn command_of(spec: &mut Spec) -> io::Result<(PathBuf, Vec<OsString>)> {
    let (program, args) = (std::mem::take(&mut spec.program), std::mem::take(&mut spec.args));
    match spec.on_parent_death {
        OnParentDeath::Kill => Ok((program, args)),
        OnParentDeath::Terminate => {
            // The shell would report this as an exit status like any other.
            std::fs::metadata(&program)?;
            let shell = ["-c", PASS_ON_ONE_SIGNAL, "sh"].map(OsString::from);
            Ok(("/bin/sh".into(), shell.into_iter().chain([program.into()]).chain(args).collect()))
        }
    }
}

fn spawn_here(mut spec: Spec, runtime: &Handle) -> io::Result<Child> {
    let (program, args) = command_of(&mut spec)?;
    let handed_down = spec.inherit.into_iter().filter_map(|name| std::env::var_os(&name).map(|value| (name, value)));
    let environment: BTreeMap<OsString, OsString> = handed_down.chain(spec.environment).collect();
    let gated = spec.on_parent_death == OnParentDeath::Terminate;
    let asks = matches!(spec.stdin, Stream::Piped);
    let (input, to_input) = if gated { Stream::Piped } else { spec.stdin }.input()?;
    let (output, from_output) = spec.stdout.output()?;
    let (errors, from_errors) = spec.stderr.output()?;
    let birth = Birth {
        program: &program,
        args: &args,
        environment: environment.into_iter().collect(),
        folder: spec.folder.as_deref(),
        streams: [input, output, errors],
        on_parent_death: spec.on_parent_death.signal(),
        confine: spec.confine.as_ref().map(Confinement::ruleset).transpose()?,
    };
    let mut child = Child::new(birth.start()?, runtime)?;
    child.stdout = from_output.map(|pipe| ChildStdout::from_std(pipe.into())).transpose()?;
    child.stderr = from_errors.map(|pipe| ChildStderr::from_std(pipe.into())).transpose()?;
    if let Some(folder) = &spec.register {
        let mut entry = Registered::of(child.id(), spec.on_parent_death == OnParentDeath::Terminate)?;
        entry.belongings = spec.belongings;
        child.registered_at(register::write(folder, &entry)?);
    }
    let Some(to_input) = to_input else { return Ok(child) };
    let mut to_input = File::from(to_input);
    if gated {
        to_input.write_all(b"go\n")?;
    }
    if asks {
        child.stdin = Some(ChildStdin::from_std(OwnedFd::from(to_input).into())?);
    }
    Ok(child)
}
