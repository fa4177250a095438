//! The real OpenTofu judges: what it installs is found, what it locks is read and written alike, and constraints choose as
//! they do there.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use landform_registry::{CliConfig, Constraints, FindError, LockError, LockFile, Locked, Package, Places, Source};
use landform_testkit::parts;
use landform_testkit::tofu::Tofu;

fn time() -> Source {
    "hashicorp/time".parse().unwrap()
}

fn init(tofu: &Tofu, version: &str) -> bool {
    let version = if version.is_empty() { String::new() } else { format!(", version = {version:?}") };
    let main = format!(
        "terraform {{\n  required_providers {{\n    time = {{ source = \"hashicorp/time\"{version} }}\n  }}\n}}\n"
    );
    tofu.write("main.tf", &main).unwrap();
    tofu.run(["init", "-input=false", "-no-color"]).unwrap().status.success()
}

fn lock_text(tofu: &Tofu) -> String {
    std::fs::read_to_string(tofu.folder().join(".terraform.lock.hcl")).unwrap()
}

/// The real provider as a packed mirror has it.
fn packed_mirror(folder: &Path) -> PathBuf {
    let version = parts::provider_version("hashicorp/time");
    let mirror = folder.join("packed");
    let place = mirror.join("registry.opentofu.org/hashicorp/time");
    std::fs::create_dir_all(&place).unwrap();
    let name = format!("terraform-provider-time_{version}_{}.zip", parts::platform());
    let mut zip = zip::ZipWriter::new(std::fs::File::create(place.join(name)).unwrap());
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
    zip.start_file(format!("terraform-provider-time_v{version}"), options).unwrap();
    zip.write_all(&std::fs::read(parts::provider("hashicorp/time")).unwrap()).unwrap();
    zip.start_file("LICENSE.txt", options.unix_permissions(0o644)).unwrap();
    zip.write_all(b"words").unwrap();
    zip.finish().unwrap();
    mirror
}

#[test]
fn finds_what_tofu_has_installed_and_locked() {
    let folder = tempfile::tempdir().unwrap();
    let tofu = Tofu::new(&folder.path().join("work"), &parts::mirror()).unwrap();
    assert!(init(&tofu, ""));

    let version = parts::provider_version("hashicorp/time").parse().unwrap();
    let lock = LockFile::of_folder(tofu.folder()).unwrap();
    assert_eq!(lock.version(&time()), Some(&version));

    let installed = CliConfig::default().places(tofu.folder());
    let found = installed.find(&time(), &Constraints::default(), lock.version(&time())).unwrap();
    assert!(found.binary.starts_with(tofu.folder().join(".terraform/providers")), "{}", found.binary.display());
    lock.check(&found).unwrap();

    // In a folder without an installation, the mirror of the CLI configuration serves.
    let mirrored = CliConfig::read(tofu.config()).unwrap().places(folder.path());
    let found = mirrored.find(&time(), &"~> 0.14".parse().unwrap(), None).unwrap();
    assert_eq!(found.version, Some(version));
    assert_eq!(found.binary, parts::provider("hashicorp/time"));
    lock.check(&found).unwrap();
}

/// The lock file that we write is the one that OpenTofu writes, and neither lets another package pass.
#[test]
fn locks_as_tofu_does_packed_and_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let packed = packed_mirror(folder.path());
    for (name, mirror) in [("unpacked", parts::mirror()), ("packed", packed)] {
        let tofu = Tofu::new(&folder.path().join(name), &mirror).unwrap();
        assert!(init(&tofu, "~> 0.14"), "{name}");
        let places = Places::mirrors([&mirror]).unpacking_into(folder.path().join("cache"));
        let found = places.find(&time(), &"~> 0.14".parse().unwrap(), None).unwrap();
        let has = found.package.as_ref().unwrap().hashes().unwrap();
        let hashes = vec![has.content.clone()];
        let locked = Locked { version: found.version.clone().unwrap(), constraints: "~> 0.14".into(), hashes };
        let ours = folder.path().join(format!("{name}-ours"));
        std::fs::create_dir(&ours).unwrap();
        let mut lock = LockFile::default();
        assert!(lock.choose(time(), locked.clone()));
        assert!(!lock.choose(time(), locked.clone()), "the same choice changes nothing");
        lock.write(&ours).unwrap();
        let written = std::fs::read_to_string(ours.join(".terraform.lock.hcl")).unwrap();
        assert_eq!(written, lock_text(&tofu), "{name}");
        assert_eq!(LockFile::of_folder(tofu.folder()).unwrap(), lock);

        // A lock file that was made from a registry knows archives, and a packed mirror has them.
        if let Some(archive) = has.archive {
            lock.choose(time(), Locked { hashes: vec![archive], ..locked.clone() });
            lock.check(&found).unwrap();
            lock.write(tofu.folder()).unwrap();
            assert!(init(&tofu, "~> 0.14"), "so says OpenTofu");
        }

        let other = Locked { hashes: vec!["h1:AAAA".into(), "zh:00".into()], ..locked };
        lock.choose(time(), other);
        assert!(matches!(lock.check(&found), Err(LockError::OtherPackage { .. })));
        lock.write(tofu.folder()).unwrap();
        assert!(!init(&tofu, "~> 0.14"), "nor does OpenTofu take it");
    }
}

#[test]
fn fifty_at_once_unpack_a_package_once() {
    let folder = tempfile::tempdir().unwrap();
    let places = Places::mirrors([packed_mirror(folder.path())]).unpacking_into(folder.path().join("cache"));
    let found: Vec<PathBuf> = std::thread::scope(|scope| {
        let find = || {
            let found = places.find(&time(), &Constraints::default(), None).unwrap();
            let started = std::process::Command::new(&found.binary).output();
            // It is no program for people, and says so; but it starts, complete.
            let busy = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
            assert!(started.as_ref().map_or_else(busy, |output| !output.stderr.is_empty()), "{started:?}");
            found.binary
        };
        let all: Vec<_> = (0..50).map(|_| scope.spawn(find)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(found.iter().all(|binary| *binary == found[0]));
    let left: Vec<_> = std::fs::read_dir(folder.path().join("cache")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing half-made stays: {left:?}");
    let content = |path: &Path| std::fs::read(path).unwrap();
    assert!(content(&found[0]) == content(&parts::provider("hashicorp/time")));
}

#[test]
fn a_package_that_is_none_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("registry.opentofu.org/hashicorp/time");
    std::fs::create_dir_all(&place).unwrap();
    let archive = place.join(format!("terraform-provider-time_1.0.0_{}.zip", parts::platform()));
    let cache = folder.path().join("cache");
    let find = || Places::mirrors([folder.path()]).unpacking_into(&cache).find(&time(), &Constraints::default(), None);
    std::fs::write(&archive, "no zip").unwrap();
    assert!(matches!(find(), Err(FindError::Unpack { .. })));
    let write = |name: &str| {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&archive).unwrap());
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(b"x").unwrap();
        zip.finish().unwrap();
    };
    write("../../outside");
    assert!(matches!(find(), Err(FindError::Unpack { .. })));
    assert!(!folder.path().join("outside").exists() && !cache.join("../outside").exists());
    write("README");
    assert!(matches!(find(), Err(FindError::EmptyPackage { .. })));
    let package = Package::Archive(archive);
    assert!(package.hashes().unwrap().archive.is_some_and(|hash| hash.starts_with("zh:")));
}

/// Which version a constraint chooses, told by a real `tofu init` over a mirror with many versions.
#[test]
fn constraints_choose_what_tofu_chooses() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("mirror");
    for version in
        ["0.9.0", "0.14.1", "0.14.2", "0.15.0-beta.1", "1.0.0", "1.2.3", "1.2.10", "2.0.0-rc.1", "2.0.0", "10.0.0"]
    {
        let package = mirror.join("registry.opentofu.org/hashicorp/time").join(version).join(parts::platform());
        std::fs::create_dir_all(&package).unwrap();
        let binary = package.join("terraform-provider-time");
        std::fs::write(&binary, version).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let places = Places::mirrors([&mirror]);
    let constraints = [
        "",
        "1.0.0",
        "= 1.0.0",
        "!= 10.0.0",
        "> 1.2.3",
        ">= 1.2.3, < 2.0.0",
        "< 1",
        "<= 1.2",
        "~> 1.2",
        "~> 1.2.3",
        "~> 0.14.0",
        "~> 0.14",
        "0.15.0-beta.1",
        ">= 0.15.0-beta.1",
        "~> 2.0.0-rc.1",
        "2.0.0-rc.1",
        "> 99",
        ">=1.0.0,!=1.2.10,<2",
        "~> 1",
        "1.2",
        "v1.0.0",
        "01.0.0",
    ];
    for (at, constraint) in constraints.iter().enumerate() {
        let tofu = Tofu::new(&folder.path().join(format!("work{at}")), &mirror).unwrap();
        let by_tofu = init(&tofu, constraint).then(|| {
            let lock = LockFile::of_folder(tofu.folder()).unwrap();
            lock.version(&time()).unwrap().to_string()
        });
        let parsed = constraint.parse::<Constraints>().ok();
        let ours = parsed.and_then(|parsed| places.find(&time(), &parsed, None).ok());
        let ours = ours.and_then(|found| found.version).map(|version| version.to_string());
        assert_eq!(ours, by_tofu, "{constraint:?}");
    }
}
