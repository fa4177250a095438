use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::register::{self, Registered, Stat};
use super::*;

fn shell(script: &str) -> Spec {
    Spec {
        args: vec!["-c".into(), script.into()],
        inherit: vec!["PATH".into()],
        stdout: Stream::Piped,
        ..Spec::new("/bin/sh")
    }
}

async fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut stdout = child.take_stdout().unwrap();
    while !line.ends_with('\n') {
        let byte = stdout.read_u8().await.expect("the child writes a line");
        line.push(byte as char);
    }
    line.trim().to_owned()
}

async fn gone(pid: u32) {
    while Stat::read(pid).is_ok_and(|stat| stat.alive()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn sees_only_the_environment_it_is_given() {
    let mut spec = shell("/usr/bin/env");
    spec.environment.insert("GIVEN".into(), "yes".into());
    let mut child = spawn(spec).await.unwrap();
    let mut output = String::new();
    child.take_stdout().unwrap().read_to_string(&mut output).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    // The shell itself adds a few.
    let names: Vec<&str> = output.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains(&"GIVEN") && names.contains(&"PATH"));
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error() {
    assert_eq!(spawn(Spec::new("/nowhere/program")).await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn what_cannot_begin_says_why() {
    use std::io::ErrorKind;
    let why = async |spec: Spec| spawn(spec).await.unwrap_err().kind();
    assert_eq!(why(Spec::new("/etc/passwd")).await, ErrorKind::PermissionDenied);
    assert_eq!(why(Spec { folder: Some("/nowhere".into()), ..shell("true") }).await, ErrorKind::NotFound);
    assert_eq!(why(Spec { args: vec!["a\0b".into()], ..Spec::new("/bin/sh") }).await, ErrorKind::InvalidInput);
    let environment = [("a=b".into(), "c".into())].into();
    assert_eq!(why(Spec { environment, ..shell("true") }).await, ErrorKind::InvalidInput);
}

/// We listen to signals, ignore SIGPIPE, and have files open; a program begins with nothing of that.
#[tokio::test]
async fn begins_with_nothing_of_ours() {
    let _ours = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::user_defined1()).unwrap();
    let open = std::fs::File::open("/dev/null").unwrap();
    let script = "while read -r name bits; do case $name in SigBlk:|SigIgn:|SigCgt:) echo $bits;; esac; done </proc/$$/status; \
        cd /proc/$$/fd; echo *";
    let mut child = spawn(shell(script)).await.unwrap();
    let mut said = String::new();
    child.take_stdout().unwrap().read_to_string(&mut said).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    let lines: Vec<&str> = said.lines().collect();
    let [blocked, ignored, caught, files] = lines[..] else { panic!("{said}") };
    let has = |bits: &str, signal: i32| u64::from_str_radix(bits, 16).unwrap() & (1 << (signal - 1)) != 0;
    assert_eq!(u64::from_str_radix(blocked, 16), Ok(0));
    assert!(!has(ignored, libc::SIGPIPE) && !has(caught, libc::SIGUSR1), "{said}");
    let number = std::os::fd::AsRawFd::as_raw_fd(&open).to_string();
    assert!(!files.split(' ').any(|file| file == number), "{number} is among {files}");
}

#[tokio::test]
async fn what_is_dropped_leaves_nothing_behind() {
    let child = spawn(shell("sleep 1000")).await.unwrap();
    let pid = child.id();
    drop(child);
    while Stat::read(pid).is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn dropping_a_child_kills_its_grandchildren() {
    let mut child = spawn(shell("sleep 1000 & echo $!; wait")).await.unwrap();
    let grandchild: u32 = first_line(&mut child).await.parse().unwrap();
    drop(child);
    gone(grandchild).await;
}

#[tokio::test]
async fn what_a_child_leaves_behind_is_killed_when_it_ends() {
    let mut child = spawn(shell("sleep 1000 >/dev/null & echo $!")).await.unwrap();
    let grandchild: u32 = first_line(&mut child).await.parse().unwrap();
    child.wait().await.unwrap();
    gone(grandchild).await;
}

#[tokio::test]
async fn stop_is_sent_once() {
    let mut child =
        spawn(shell("trap 'echo stopped; exit 3' TERM; echo ready; while :; do sleep 0.01; done")).await.unwrap();
    let mut stdout = child.take_stdout().unwrap();
    assert_eq!(stdout.read_u8().await.unwrap(), b'r');
    child.stop().unwrap();
    child.stop().unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(3));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest.matches("stopped").count(), 1);
}

#[tokio::test]
async fn a_child_that_saves_its_state_gets_one_signal_of_several() {
    let script = "n=0; trap 'n=$((n+1))' TERM; echo ready; \
        while [ $n = 0 ]; do sleep 0.01; done; sleep 0.3; echo signals $n; exit 7";
    let mut child = spawn(Spec { on_parent_death: OnParentDeath::Terminate, ..shell(script) }).await.unwrap();
    let mut stdout = child.take_stdout().unwrap();
    assert_eq!(stdout.read_u8().await.unwrap(), b'r');
    for _ in 0..3 {
        let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("signals 1\n"), "{rest}");
    assert_eq!(child.wait().await.unwrap().code(), Some(7));
}

/// The shell in between, and the program in its first moments, lose no signal either.
#[tokio::test]
async fn a_stop_is_not_lost_however_early_it_comes() {
    for early in 0..300 {
        let spec =
            Spec { args: vec!["1000".into()], on_parent_death: OnParentDeath::Terminate, ..Spec::new("/bin/sleep") };
        let mut child = spawn(spec).await.unwrap();
        // The runtime's own timer is too coarse for this.
        std::thread::sleep(Duration::from_micros(early * 10));
        child.stop().unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
        assert!(ended.is_ok_and(|status| !status.unwrap().success()), "a stop after {early} * 10 µs was lost");
    }
}

#[tokio::test]
async fn a_child_that_saves_its_state_can_be_answered() {
    use tokio::io::AsyncWriteExt;
    let mut spec = shell("read -r one; read -r two || two=end; echo $one $two");
    spec.on_parent_death = OnParentDeath::Terminate;
    spec.stdin = Stream::Piped;
    let mut child = spawn(spec).await.unwrap();
    let mut stdin = child.take_stdin().unwrap();
    stdin.write_all(b"yes\n").await.unwrap();
    drop(stdin);
    assert_eq!(first_line(&mut child).await, "yes end");
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn outlives_the_thread_that_asked_for_it() {
    use tokio::io::AsyncWriteExt;
    let runtime = tokio::runtime::Handle::current();
    let mut spec = shell("read line; echo alive");
    spec.stdin = Stream::Piped;
    let asker = std::thread::spawn(move || runtime.block_on(spawn(spec)).unwrap());
    let mut child = tokio::task::spawn_blocking(|| asker.join().unwrap()).await.unwrap();
    child.take_stdin().unwrap().write_all(b"\n").await.unwrap();
    assert_eq!(first_line(&mut child).await, "alive");
}

/// Tests nothing by itself: it is the process that dies in the test below.
#[tokio::test]
async fn a_parent_that_dies() {
    let Some(folder) = std::env::var_os("LANDFORM_TEST_REGISTER") else { return };
    let mut spec = shell("sleep 1000 & echo $!; wait");
    spec.belongings = Some(std::path::Path::new(&folder).join("belongings"));
    std::fs::create_dir_all(spec.belongings.as_ref().unwrap()).unwrap();
    spec.register = Some(folder.into());
    let mut child = spawn(spec).await.unwrap();
    let grandchild = first_line(&mut child).await;
    std::fs::write(std::env::var_os("LANDFORM_TEST_ANSWER").unwrap(), format!("{} {grandchild}", child.id())).unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_parent_takes_its_child_along_and_the_sweep_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (register, answer) = (folder.path().join("register"), folder.path().join("answer"));
    let status = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::tests::a_parent_that_dies"])
        .env("LANDFORM_TEST_REGISTER", &register)
        .env("LANDFORM_TEST_ANSWER", &answer)
        .stdout(std::process::Stdio::null())
        .status()
        .await
        .unwrap();
    assert!(!status.success());
    let answer = std::fs::read_to_string(answer).unwrap();
    let (child, grandchild) = answer.split_once(' ').unwrap();
    let (child, grandchild): (u32, u32) = (child.parse().unwrap(), grandchild.parse().unwrap());
    gone(child).await;
    assert!(Stat::read(grandchild).is_ok_and(|stat| stat.alive()), "the kernel does not care for grandchildren");
    assert!(register.join("belongings").is_dir());
    assert_eq!(sweep(&register, Duration::ZERO).await.unwrap(), [Swept { pid: child, outcome: Outcome::Killed }]);
    gone(grandchild).await;
    assert!(!register.join("belongings").exists());
}

#[tokio::test]
async fn is_registered_while_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = shell("read line");
    spec.stdin = Stream::Piped;
    spec.register = Some(folder.path().to_owned());
    let mut child = spawn(spec).await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(child.take_stdin());
    child.wait().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// What a crashed parent leaves: a child that was not dropped, and its register file. Nobody here keeps the `Child`,
/// so a thread must reap it, as init would.
async fn orphan(folder: &std::path::Path, script: &str, stops_by_itself: bool) -> u32 {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    let mut child = std::process::Command::new("/bin/sh")
        .args(["-c", script])
        .process_group(0)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let entry = Registered::of(child.id(), stops_by_itself).unwrap();
    register::write(folder, &entry).unwrap();
    std::thread::spawn(move || child.wait());
    entry.pid
}

#[tokio::test]
async fn sweep_kills_a_leftover_group_and_leaves_strangers_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pid = orphan(folder.path(), "echo ready; sleep 1000; :", false).await;
    // The same process under another start time is somebody else.
    let mut stranger = spawn(shell("echo ready; sleep 1000; :")).await.unwrap();
    let mut entry = Registered::of(stranger.id(), false).unwrap();
    entry.start_time -= 1;
    register::write(folder.path(), &entry).unwrap();
    let mut swept = sweep(folder.path(), Duration::from_secs(60)).await.unwrap();
    swept.sort_by_key(|entry| entry.outcome == Outcome::Killed);
    assert_eq!(
        swept,
        [Swept { pid: stranger.id(), outcome: Outcome::AlreadyGone }, Swept { pid, outcome: Outcome::Killed }]
    );
    assert!(stranger.try_wait().unwrap().is_none());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn sweep_waits_for_what_stops_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    let script = format!("echo ready; sleep 0.2; echo state > {}", saved.display());
    let pid = orphan(folder.path(), &script, true).await;
    let swept = sweep(folder.path(), Duration::from_secs(600)).await.unwrap();
    assert_eq!(swept, [Swept { pid, outcome: Outcome::Stopped }]);
    assert!(saved.exists(), "it had the time to save its state");
}

#[tokio::test]
async fn sweep_kills_what_does_not_stop_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let pid = orphan(folder.path(), "echo ready; sleep 1000; :", true).await;
    let swept = sweep(folder.path(), Duration::ZERO).await.unwrap();
    assert_eq!(swept, [Swept { pid, outcome: Outcome::Killed }]);
}

/// The parent has died between starting the child and registering it: nobody could find the program again.
#[tokio::test]
async fn a_program_that_saves_its_state_begins_only_when_it_is_registered() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", super::spawn::PASS_ON_ONE_SIGNAL, "sh", "/bin/sh", "-c"])
        .arg(format!("echo > {}", mark.display()))
        .stdin(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!((status.code(), mark.exists()), (Some(143), false));

    let mut spec = shell(&format!("echo > {}", mark.display()));
    spec.on_parent_death = OnParentDeath::Terminate;
    let mut child = spawn(spec).await.unwrap();
    assert!(child.wait().await.unwrap().success());
    assert!(mark.exists());
}
