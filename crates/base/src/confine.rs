//! What a child may see of the file system, enforced by the kernel (Landlock).
//!
//! A confined child reads what every program on the machine needs, reads and writes what it is given, and can neither
//! open anything else nor send a signal to anybody outside. Its own children inherit that. The network is not
//! restricted, nor is connecting to a named socket.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, RulesetAttr, RulesetCreatedAttr, Scope, path_beneath_rules,
};

/// What a child may see besides the system's own files.
#[derive(Clone, Debug, Default)]
pub struct Confinement {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
}

/// Programs, libraries and certificates; of the configuration only what names, time and trust need. Folders in which
/// other people's secrets may lie (`/etc` as a whole, `/home`, `/proc`) are not among them.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/machine-id",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// The oldest kernel interface that confines: before it, nothing is enforced. Later rights are used where they exist.
const FULL: ABI = ABI::V5;

/// Whether this kernel can confine a child, and if not, why.
pub fn support() -> Result<(), String> {
    let ruleset = landlock::Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(landlock::Ruleset::create);
    match ruleset {
        Ok(_) => Ok(()),
        Err(_) => Err("the kernel has no Landlock, or it is switched off (the boot option `lsm=` decides)".to_owned()),
    }
}

impl Confinement {
    pub fn and_read(mut self, path: impl AsRef<Path>) -> Confinement {
        self.read.push(path.as_ref().to_owned());
        self
    }

    pub fn and_write(mut self, path: impl AsRef<Path>) -> Confinement {
        self.write.push(path.as_ref().to_owned());
        self
    }

    /// Made by the parent: a child before its program may not allocate.
    pub(crate) fn ruleset(&self) -> io::Result<Ruleset> {
        let system = SYSTEM.iter().map(PathBuf::from);
        let devices = DEVICES.iter().map(PathBuf::from);
        let reading = AccessFs::from_read(FULL);
        landlock::Ruleset::default()
            .handle_access(AccessFs::from_all(FULL))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)))
            .and_then(landlock::Ruleset::create)
            .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(system.chain(self.read.iter().cloned()), reading)))
            .and_then(|ruleset| {
                let writable = devices.chain(self.write.iter().cloned());
                ruleset.add_rules(path_beneath_rules(writable, AccessFs::from_all(FULL)))
            })
            .map(Ruleset::from)
            .map_err(io::Error::other)
    }
}

/// Rules as the kernel keeps them; none where it knows none.
pub(crate) type Ruleset = Option<OwnedFd>;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::child::{Spec, Stream, spawn};

    async fn run(script: &str, confinement: Confinement) -> String {
        let mut child = spawn(Spec {
            args: vec!["-c".into(), script.into()],
            inherit: vec!["PATH".into()],
            stdout: Stream::Piped,
            confine: Some(confinement),
            ..Spec::new("/bin/sh")
        })
        .await
        .unwrap();
        let mut output = String::new();
        child.take_stdout().unwrap().read_to_string(&mut output).await.unwrap();
        child.wait().await.unwrap();
        output
    }

    #[tokio::test]
    async fn a_confined_child_sees_what_it_was_given_and_nothing_else() {
        support().expect("this test needs a kernel with Landlock");
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["mine", "shown", "hidden"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::write(at(name).join("file"), name).unwrap();
        }
        let script = format!(
            "cd {0} 2>/dev/null; cat mine/file shown/file; cat hidden/file 2>/dev/null || echo -no; \
             echo more >> mine/file && echo -written; echo more 2>/dev/null >> shown/file || echo -no; \
             ls hidden 2>/dev/null || echo -no; cat /etc/shadow 2>/dev/null || echo -no; \
             cat /proc/{1}/environ 2>/dev/null || echo -no; kill -0 {1} 2>/dev/null || echo -no",
            folder.path().display(),
            std::process::id(),
        );
        let given = Confinement::default().and_write(at("mine")).and_read(at("shown"));
        let output = run(&script, given).await;
        let words: Vec<&str> = output.split_whitespace().collect();
        assert_eq!(words, ["mineshown-no", "-written", "-no", "-no", "-no", "-no", "-no"], "{output}");
    }

    #[tokio::test]
    async fn grandchildren_are_confined_too() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "secret").unwrap();
        let script = format!("sh -c 'env sh -c \"cat {}/file 2>/dev/null || echo no\"'", folder.path().display());
        assert_eq!(run(&script, Confinement::default()).await.trim(), "no");
    }
}
