//! The disk takes no more.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::house::{House, Memory, kept, wait_for};

/// The disk is full in the middle of an apply: callers are told to come back, what the provider did is kept in room that was
/// set aside for it, and when there is room again nobody has to be asked.
#[tokio::test]
async fn a_full_disk_in_mid_apply_loses_nothing() {
    let mut house = House::build(Memory::Sqlite).await;
    house.landform.take().unwrap().stop().await.unwrap();
    let disk = SmallDisk::in_place_of(&house.setup.data);
    let binary = house.root.path().join("on-the-small-disk");
    house.setup.binary = disk.program(&house.setup.binary, &binary);
    house.restart().await;

    let run = house.put("native", "site", 10_000).await;
    house.until_touched(&run).await;
    disk.fill();
    let body = house.body("native", "another", 1, 0);
    let path = "/v1/tenants/acme/deployments/another";
    let answer = house.landform().request(reqwest::Method::PUT, path).json(&body).send().await.unwrap();
    let status = answer.status();
    let said: serde_json::Value = answer.json().await.unwrap();
    assert_eq!((status.as_u16(), &said["code"]), (503, &json!("store_unavailable")), "{said}");
    // What the database had begun to write for that one has its room still. Each look takes a page of it, until nothing fits.
    wait_for("a full disk to be no place to write", async || {
        let ready = house.landform().request(reqwest::Method::GET, "/readyz").send().await.ok()?;
        (ready.status() == 503).then_some(())
    })
    .await;
    let spool = disk.inside.join("worker/spool");
    wait_for("the result to be kept beside the database", async || (!kept(&spool).is_empty()).then_some(())).await;
    house.landform.take().unwrap().kill().unwrap();

    disk.empty();
    house.restart().await;
    house.until(&run, &["succeeded", "unchanged"]).await;
    house.agree("site").await;
    assert!(kept(&spool).is_empty(), "what was brought is gone");

    // Once more, and the same process goes on.
    let run = house.put("native", "second", 2_000).await;
    house.until_touched(&run).await;
    disk.fill();
    wait_for("the object to be made", async || {
        let ledger = landform_testkit::ledger::read(&house.ledger()).ok()?;
        (!ledger.named("second").is_empty()).then_some(())
    })
    .await;
    // The provider takes another second before it says so.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    disk.empty();
    house.until(&run, &["succeeded", "unchanged"]).await;
    house.agree("second").await;
    let run = house.put("native", "third", 0).await;
    house.until(&run, &["succeeded"]).await;
}

/// A file system of its own in a mount namespace of its own, which is gone with this value, however the test ends. It needs
/// root, or a kernel that lets users make namespaces.
struct SmallDisk {
    /// Holds the namespace while nobody else is in it; ends with its standard input.
    holder: Child,
    /// The folder as those inside see it.
    inside: PathBuf,
    as_root: bool,
}

const SIZE: &str = "64m";

impl SmallDisk {
    /// Those inside see it in place of the folder, with what the folder has now.
    fn in_place_of(folder: &Path) -> SmallDisk {
        let as_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        let script = format!(
            "set -e; cp -a \"$1\" \"$1.original\"; mount -t tmpfs -o size={SIZE},mode=0700 tmpfs \"$1\"
             cp -a \"$1.original/.\" \"$1\"; echo ready; exec cat"
        );
        let mut holder = Command::new("unshare")
            .args(if as_root { &["--mount"][..] } else { &["--mount", "--map-root-user"] })
            .args(["sh", "-c", &script, "sh"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare, of util-linux");
        let mut line = String::new();
        BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "a mount namespace: this needs root, or a kernel that lets users make them");
        let root = PathBuf::from(format!("/proc/{}/root", holder.id()));
        let inside = root.join(folder.strip_prefix("/").unwrap());
        SmallDisk { holder, inside, as_root }
    }

    /// A program at `path` that is `binary` inside.
    fn program(&self, binary: &Path, path: &Path) -> PathBuf {
        let (holder, binary) = (self.holder.id(), binary.display());
        let user = if self.as_root { "" } else { "--user --preserve-credentials" };
        let script = format!("#!/bin/sh\nexec nsenter --target {holder} --mount {user} -- '{binary}' \"$@\"\n");
        std::fs::write(path, script).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_owned()
    }

    fn fill(&self) {
        let mut filler = std::fs::File::create(self.inside.join("filler")).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            let bytes = vec![0; size];
            let full = loop {
                if let Err(error) = filler.write_all(&bytes) {
                    break error;
                }
            };
            assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
        }
    }

    fn empty(&self) {
        std::fs::remove_file(self.inside.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
