//! The README's first deployment, typed as it stands there.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn the_first_deployment_works_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let section = readme.split("## A first deployment").nth(1).expect("the section is there");
    let section = section.split("\n## ").next().expect("it has a text");
    let mut commands = section.lines().filter_map(|line| line.strip_prefix("landform "));
    assert_eq!(commands.next(), Some("serve"));
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::start(&root, data.path());
    let mut printed = String::new();
    for command in commands {
        let output = landform(&root, data.path(), server.port, command).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "`landform {command}` failed: {error}");
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    assert!(printed.contains("Hello, world!") && printed.contains("Hello, moon!"), "{printed}");
}

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(root: &Path, data: &Path) -> Server {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let process = landform(root, data, port, "serve").stderr(Stdio::null()).spawn().expect("it starts");
        let begin = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { process, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The command as written; only the port and the data folder are not the usual ones.
fn landform(root: &Path, data: &Path, port: u16, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_landform"));
    command
        .args(words.split_whitespace())
        .current_dir(root)
        .env("LANDFORM_DATA", data)
        .env("LANDFORM_LISTEN", format!("127.0.0.1:{port}"))
        .env("LANDFORM_SERVER", format!("http://127.0.0.1:{port}"))
        .env_remove("LANDFORM_TOKEN")
        .env_remove("LANDFORM_DATABASE")
        .stdin(Stdio::null());
    command
}
