//! The birth of a child, without a copy of us.
//!
//! What a child must ask for itself (the signal of its parent's death, its confinement) it asks for between its birth and its
//! program. The standard library forks for that, and a fork copies the tables of all our memory and makes every page that we
//! write next a copy as well: milliseconds for each provider of a server with some hundred megabytes. Here the child borrows
//! our memory until its program begins, while the thread that started it waits, as in `posix_spawn`.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use rustix::process::{Pid, Signal};

use crate::confine::Ruleset;

/// All that a new process needs.
pub(super) struct Birth<'a> {
    /// A path; it is not searched for.
    pub program: &'a Path,
    pub args: &'a [OsString],
    /// The whole of it.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: Option<&'a Path>,
    /// Input, output and errors; without one it has ours.
    pub streams: [Option<OwnedFd>; 3],
    /// What the kernel sends it when the thread that starts it ends.
    pub on_parent_death: Signal,
    /// The rules that it puts on itself.
    pub confine: Option<Ruleset>,
}

impl Birth<'_> {
    /// Starts the program in a process group of its own. The error is also that of a program that cannot begin.
    pub(super) fn start(self) -> io::Result<Pid> {
        let program = c_string(self.program.as_os_str())?;
        let mut args = vec![program.clone()];
        for arg in self.args {
            args.push(c_string(arg)?);
        }
        let mut environment = Vec::new();
        for (name, value) in &self.environment {
            // A first one belongs to the name, as some shells hand it down.
            if name.is_empty() || name.as_bytes()[1..].contains(&b'=') {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a variable of the environment has a bad name",
                ));
            }
            environment.push(c_string(&[name, value].map(OsString::as_os_str).join(OsStr::new("=")))?);
        }
        let mut unborn = Unborn {
            args: pointers(&args),
            environment: pointers(&environment),
            program,
            folder: self.folder.map(|folder| c_string(folder.as_os_str())).transpose()?,
            streams: self.streams.each_ref().map(|stream| stream.as_ref().map(AsRawFd::as_raw_fd)),
            on_parent_death: self.on_parent_death,
            parent: rustix::process::getpid(),
            confine: self.confine.as_ref().map(|rules| rules.as_ref().map(AsRawFd::as_raw_fd)),
            failed: None,
        };
        let pid = born(&mut unborn)?;
        let Some(error) = unborn.failed else { return Ok(pid) };
        // It has ended by itself already.
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
        Err(error.into())
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// With the null at the end that the kernel looks for.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// What the child finds in the memory that it borrows, made ready so that it need not allocate.
struct Unborn {
    program: CString,
    args: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    folder: Option<CString>,
    streams: [Option<c_int>; 3],
    on_parent_death: Signal,
    parent: Pid,
    /// The kernel's rules, none where it knows none; it is confined if there is anything.
    confine: Option<Option<c_int>>,
    /// Why the program did not begin, told by the child.
    failed: Option<rustix::io::Errno>,
}

/// Far more than the child needs for a dozen system calls.
const STACK: usize = 256 * 1024;

#[allow(unsafe_code, reason = "nothing safe makes a process that borrows our memory")]
fn born(unborn: &mut Unborn) -> io::Result<Pid> {
    let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end.cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: a handler of ours that ran in the child would change what is also our memory, so signals wait until the child has
    // taken its handlers off. The sets are initialised by the calls before they are read. `clone` returns here only when the
    // child has begun its program or has ended, so the stack and `unborn` live as long as it uses them, and until then nobody
    // else touches them: this thread stands still, and no other knows them. The stack grows downwards from `top`, which is
    // aligned to 16 bytes as the end of a vector of such items.
    let (pid, error) = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::clone(begin, top, flags, ptr::from_mut(unborn).cast::<c_void>());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        (pid, error)
    };
    Pid::from_raw(pid.max(0)).ok_or(error)
}

/// The first and only function of the child. It returns if the program cannot begin, and that ends the child.
#[allow(unsafe_code, reason = "it is handed a bare pointer")]
extern "C" fn begin(unborn: *mut c_void) -> c_int {
    // SAFETY: `born` hands down its own exclusive reference, and does not go on while this function runs.
    let unborn = unsafe { &mut *unborn.cast::<Unborn>() };
    unborn.failed = Some(become_program(unborn));
    127
}

/// Only calls that go to the kernel straight away: nothing here allocates, locks or unwinds, on any way through it.
#[allow(unsafe_code, reason = "the child is set up by bare system calls")]
fn become_program(unborn: &Unborn) -> rustix::io::Errno {
    let failed = || rustix::io::Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(rustix::io::Errno::INVAL);
    if let Err(error) = rustix::process::setpgid(None, None) {
        return error;
    }
    for (number, stream) in (0..).zip(unborn.streams) {
        // SAFETY: it changes the child's table of files alone, which is a copy of ours. Ours are above 2, as the runtime opens
        // those before anything else, so that none is overwritten before it is used.
        if let Some(stream) = stream
            && unsafe { libc::dup2(stream, number) } < 0
        {
            return failed();
        }
    }
    if let Some(folder) = &unborn.folder
        && let Err(error) = rustix::process::chdir(folder.as_c_str())
    {
        return error;
    }
    if let Some(rules) = unborn.confine {
        if let Err(error) = rustix::thread::set_no_new_privs(true) {
            return error;
        }
        // SAFETY: it takes two numbers.
        if let Some(rules) = rules
            && unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, 0) } != 0
        {
            return failed();
        }
    }
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(unborn.on_parent_death)) {
        return error;
    }
    // The parent may have died before the request above: then the signal never comes.
    if rustix::process::getppid() != Some(unborn.parent) {
        return rustix::io::Errno::SRCH;
    }
    // SAFETY: the handlers and the mask are the child's own copies. The pointers lead to strings and lists that end with a null
    // and outlive the call.
    unsafe {
        take_off_handlers();
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::execve(unborn.program.as_ptr(), unborn.args.as_ptr(), unborn.environment.as_ptr());
    }
    failed()
}

/// A handler would run in our memory, though for the child. What is ignored stays so, but for SIGPIPE: that is the Rust
/// runtime's own wish, and programs do not expect it.
///
/// # Safety
/// Only in a process with a table of handlers of its own.
#[allow(unsafe_code, reason = "handlers are set by bare system calls")]
unsafe fn take_off_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: both structures are initialised, by zeros or by the first call, and neither handler is a function.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &raw mut action) == 0;
            let stays = action.sa_sigaction == libc::SIG_DFL || action.sa_sigaction == libc::SIG_IGN;
            if known && (!stays || signal == libc::SIGPIPE) {
                action = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    }
}
