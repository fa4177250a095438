use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use landform_base::child::{self, Child, OnParentDeath, Spec, Stream};
use landform_base::confine::Confinement;
use tokio::io::AsyncWriteExt;

use super::failed;
use super::tail::Tail;
use crate::{EngineError, Progress, Stop};

/// How often new output is looked for. The end of the child is noticed at once; a question waits so long.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// In looks.
const MEASURE_EVERY: u32 = 32;

/// How the CLI ends a question. Behind it there is nothing until it has an answer.
const QUESTION: &[u8] = b"Enter a value: ";

/// One run of the CLI.
#[derive(Clone)]
pub(super) struct Invocation<'a> {
    pub binary: PathBuf,
    pub args: Vec<OsString>,
    pub folder: PathBuf,
    /// Output goes to files here, and the child is registered here while it lives.
    pub scratch: PathBuf,
    pub environment: BTreeMap<OsString, OsString>,
    /// What it may see of the file system; `None` is everything.
    pub confine: Option<Confinement>,
    /// Is told how much memory the child and its children take.
    pub progress: &'a dyn Progress,
}

pub(super) struct Ended {
    pub status: ExitStatus,
    pub asked_to_stop: bool,
    /// The end of what was written to standard error.
    pub stderr: String,
}

/// What a CLI that is being listened to does next.
pub(super) enum Next {
    Ended(Ended),
    /// It waits for an answer.
    Asks,
}

impl<'a> Invocation<'a> {
    pub fn with(&self, args: Vec<OsString>) -> Invocation<'a> {
        Invocation { args, ..self.clone() }
    }

    /// Runs the CLI to its end and hands each line of its output to `on_line`. When `stop` fires it is asked once to
    /// stop and then waited for, however long it takes: it is saving its state.
    pub async fn run(self, stop: &Stop, on_line: impl FnMut(&[u8]) + Send) -> Result<Ended, EngineError> {
        let mut running = self.start(Stream::Null, "cli.stdout").await?;
        running.finish(stop, on_line).await
    }

    /// Runs the CLI to its end, and returns all of its output, which may have so many bytes.
    pub async fn capture(self, stop: &Stop, most: u64) -> Result<(Ended, Vec<u8>), EngineError> {
        let path = self.scratch.join("cli.stdout");
        let mut running = self.start(Stream::Null, "cli.stdout").await?;
        running.lines = None;
        running.largest_output = most;
        let ended = running.finish(stop, |_| {}).await?;
        let bytes = std::fs::read(&path).map_err(|e| failed(&path, e))?;
        Ok((ended, bytes))
    }

    /// Starts a CLI that may ask, and that writes its messages to [`Invocation::messages`] so that standard output is
    /// left to people's words.
    pub async fn start_asking(self) -> Result<Running<'a>, EngineError> {
        let messages = self.messages();
        File::create(&messages).map_err(|e| failed(&messages, e))?;
        self.start(Stream::Piped, "cli.messages").await
    }

    pub fn messages(&self) -> PathBuf {
        self.scratch.join("cli.messages")
    }

    /// Output goes through files. A pipe would break when this process dies, and the CLI, asked by the kernel to stop
    /// in that moment, would die of its first message instead of saving its state.
    async fn start(self, stdin: Stream, messages: &str) -> Result<Running<'a>, EngineError> {
        let stdout = self.scratch.join("cli.stdout");
        let stderr = self.scratch.join("cli.stderr");
        let create = |path: &Path| File::create(path).map_err(|e| failed(path, e));
        let spec = Spec {
            args: self.args,
            environment: self.environment,
            folder: Some(self.folder),
            stdin,
            stdout: Stream::File(create(&stdout)?),
            stderr: Stream::File(create(&stderr)?),
            on_parent_death: OnParentDeath::Terminate,
            register: Some(self.scratch.clone()),
            confine: self.confine,
            ..Spec::new(&self.binary)
        };
        let messages = self.scratch.join(messages);
        let (lines, words, errors) = (Tail::open(&messages)?, Tail::open(&stdout)?, Tail::open(&stderr)?);
        let mut child = child::spawn(spec).await.map_err(|e| failed(&self.binary, e))?;
        let answers = child.take_stdin();
        let words = Some(words).filter(|_| messages != stdout);
        Ok(Running {
            child,
            answers,
            lines: Some(lines),
            words,
            errors,
            stdout,
            largest_output: u64::MAX,
            asked_to_stop: false,
            progress: self.progress,
            looks: 0,
        })
    }
}

/// A CLI at work. Dropping it kills it.
pub(super) struct Running<'a> {
    child: Child,
    answers: Option<tokio::process::ChildStdin>,
    /// Its messages, one on each line.
    lines: Option<Tail>,
    /// Standard output, where that is not the same.
    words: Option<Tail>,
    errors: Tail,
    stdout: PathBuf,
    largest_output: u64,
    asked_to_stop: bool,
    progress: &'a dyn Progress,
    looks: u32,
}

impl Running<'_> {
    /// Listens until the CLI ends, or asks something that nobody has answered yet.
    pub async fn next(&mut self, stop: &Stop, mut on_line: impl FnMut(&[u8]) + Send) -> Result<Next, EngineError> {
        let status = loop {
            tokio::select! {
                status = self.child.wait() => break status,
                () = stop.cancelled(), if !self.asked_to_stop => {
                    self.asked_to_stop = true;
                    // It may have ended in this moment, which the next turn notices.
                    let _ = self.child.stop();
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    let asks = self.look()?;
                    if let Some(lines) = &mut self.lines {
                        lines.lines(&mut on_line)?;
                    }
                    if asks && self.asked_to_stop {
                        // Nobody answers any more. The end of its input says so even to a CLI that missed the signal.
                        self.answers = None;
                    }
                    if asks && self.answers.is_some() {
                        return Ok(Next::Asks);
                    }
                }
            }
        };
        let status = status.map_err(|e| EngineError::Lost(format!("the CLI could not be waited for: {e}")))?;
        // A stream that cannot be read to its end is no reason to forget how the child ended.
        while let Some(lines) = &mut self.lines
            && lines.lines(&mut on_line)?
        {}
        while self.errors.skip()? {}
        Ok(Next::Ended(Ended { status, asked_to_stop: self.asked_to_stop, stderr: self.errors.end() }))
    }

    pub async fn finish(&mut self, stop: &Stop, mut on_line: impl FnMut(&[u8]) + Send) -> Result<Ended, EngineError> {
        loop {
            match self.next(stop, &mut on_line).await? {
                Next::Ended(ended) => return Ok(ended),
                Next::Asks => self.answers = None,
            }
        }
    }

    /// Answers what was asked, and nothing that is asked later.
    pub async fn answer(&mut self, text: &str) -> Result<(), EngineError> {
        if let Some(mut answers) = self.answers.take() {
            let written = async {
                answers.write_all(text.as_bytes()).await?;
                answers.write_all(b"\n").await?;
                answers.flush().await
            };
            written.await.map_err(|e| failed(Path::new("the CLI's standard input"), e))?;
        }
        Ok(())
    }

    /// Ends it and its children at once: only for a CLI that has changed nothing.
    pub async fn kill(&mut self) -> Result<(), EngineError> {
        let killed = self.child.kill().await;
        killed.map(drop).map_err(|e| EngineError::Lost(format!("the CLI could not be waited for: {e}")))
    }

    /// Keeps what nobody reads from filling the disk. True: the CLI has asked something.
    fn look(&mut self) -> Result<bool, EngineError> {
        self.looks += 1;
        // The kernel keeps the highest of each process, so it is enough to look before they end: soon, then rarely.
        if self.looks.is_power_of_two() || self.looks.is_multiple_of(MEASURE_EVERY) {
            self.progress.memory(landform_base::memory::peak_of_tree(self.child.id()));
        }
        self.errors.skip()?;
        if self.lines.is_none() {
            let size = std::fs::metadata(&self.stdout).map_err(|e| failed(&self.stdout, e))?.len();
            if size > self.largest_output {
                return Err(super::too_large(self.largest_output));
            }
        }
        let Some(words) = &mut self.words else { return Ok(false) };
        words.skip()?;
        Ok(words.ends_with(QUESTION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, scratch: &Path) -> Invocation<'static> {
        Invocation {
            binary: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            folder: scratch.to_owned(),
            scratch: scratch.to_owned(),
            environment: BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap())]),
            confine: None,
            progress: &crate::Silent,
        }
    }

    #[tokio::test]
    async fn a_stop_is_asked_for_once_and_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let script =
            "trap 'n=$((n+1)); sleep 0.2; echo stopped $n; exit 1' TERM; echo ready; while :; do sleep 0.01; done";
        let stop = Stop::new();
        let mut seen = Vec::new();
        let ended = shell(script, scratch.path())
            .run(&stop, |line| {
                stop.cancel();
                seen.push(String::from_utf8_lossy(line).into_owned());
            })
            .await
            .unwrap();
        assert_eq!(seen, ["ready", "stopped 1"]);
        assert!(ended.asked_to_stop);
        assert_eq!(ended.status.code(), Some(1));
    }

    #[tokio::test]
    async fn a_question_is_answered_once() {
        let scratch = tempfile::tempdir().unwrap();
        let script = "echo planned > cli.messages; printf '  Enter a value: '; read -r a; printf 'Enter a value: '; \
            read -r b || b=nothing; echo $a $b >> cli.messages";
        let (stop, mut seen) = (Stop::new(), Vec::new());
        let mut note = |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned());
        let mut running = shell(script, scratch.path()).start_asking().await.unwrap();
        assert!(matches!(running.next(&stop, &mut note).await.unwrap(), Next::Asks));
        running.answer("yes").await.unwrap();
        assert!(running.finish(&stop, &mut note).await.unwrap().status.success());
        assert_eq!(seen, ["planned", "yes nothing"]);
    }

    #[tokio::test]
    async fn a_question_after_a_stop_gets_no_answer() {
        let scratch = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; printf 'Enter a value: '; read -r a || a=nothing; echo $a >> cli.messages";
        let (stop, mut seen) = (Stop::new(), Vec::new());
        stop.cancel();
        let mut running = shell(script, scratch.path()).start_asking().await.unwrap();
        // A stop before the script has begun would end it.
        while std::fs::metadata(scratch.path().join("cli.stdout")).unwrap().len() == 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let next = running.next(&stop, |line| seen.push(String::from_utf8_lossy(line).into_owned()));
        let next = tokio::time::timeout(Duration::from_secs(60), next).await.expect("it waits for an answer");
        assert!(matches!(next, Ok(Next::Ended(Ended { asked_to_stop: true, .. }))));
        assert_eq!(seen, ["nothing"]);
    }

    #[tokio::test]
    async fn a_flood_is_read_and_given_back_to_the_disk() {
        use std::os::unix::fs::MetadataExt;
        let scratch = tempfile::tempdir().unwrap();
        let script = "yes 0123456789abcdef | head -c 100000000; yes | head -c 50000000 >&2; echo the end >&2";
        let mut lines = 0;
        let ended = shell(script, scratch.path()).run(&Stop::new(), |_| lines += 1).await.unwrap();
        assert!(lines > 5_000_000, "{lines}");
        assert!(ended.stderr.ends_with("the end"));
        for name in ["cli.stdout", "cli.stderr"] {
            let on_disk = std::fs::metadata(scratch.path().join(name)).unwrap().blocks() * 512;
            assert!(on_disk < 10_000_000, "{name} takes {on_disk} bytes");
        }
    }

    #[tokio::test]
    async fn more_than_was_allowed_for_is_refused_while_it_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let result = shell("yes", scratch.path()).capture(&Stop::new(), 1_000_000).await;
        assert!(matches!(result, Err(EngineError::Diagnostics(_))));
    }
}
