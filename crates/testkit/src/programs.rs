//! The programs of this workspace that tests start.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// A program of this crate, by name. Cargo builds them beside the tests; where it has not, they are built now.
pub fn path(name: &str) -> PathBuf {
    let here = std::env::current_exe().expect("a test knows its own path");
    // Tests lie in `target/PROFILE/deps`, programs in `target/PROFILE`.
    let folder = here.parent().expect("a file lies in a folder");
    let folder = if folder.ends_with("deps") { folder.parent().expect("deps lies in a profile") } else { folder };
    let program = folder.join(name);
    if !program.exists() {
        build(folder);
    }
    assert!(program.exists(), "{} is missing: run `cargo build -p landform-testkit --bins`", program.display());
    program
}

fn build(folder: &Path) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // Together with the binary: alone, third-party crates would have other features and be compiled once more.
        cargo.args(["build", "-p", "landform", "-p", "landform-testkit", "--bins", "--target-dir"]);
        cargo.arg(folder.join(".."));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.status().expect("cargo can be started");
        assert!(status.success(), "the programs of landform-testkit cannot be built");
    });
}

/// A file under another name, without a copy where that is possible. No symbolic link: a mirror's content is hashed.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        std::fs::remove_file(to)?;
    }
    std::fs::hard_link(from, to).or_else(|_| std::fs::copy(from, to).map(drop))
}
