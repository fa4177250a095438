//! What the real OpenTofu installs is found where it put it.

use landform_registry::{CliConfig, Constraints, LockFile, Source};
use landform_testkit::parts;
use landform_testkit::tofu::Tofu;

#[test]
fn finds_what_tofu_has_installed_and_locked() {
    let folder = tempfile::tempdir().unwrap();
    let tofu = Tofu::new(&folder.path().join("work"), &parts::mirror()).unwrap();
    tofu.write("main.tf", "terraform {\n required_providers {\n time = { source = \"hashicorp/time\" }\n }\n}\n")
        .unwrap();
    let output = tofu.run(["init", "-input=false", "-no-color"]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let source: Source = "hashicorp/time".parse().unwrap();
    let version = parts::provider_version("hashicorp/time").parse().unwrap();
    let lock = LockFile::of_folder(tofu.folder()).unwrap();
    assert_eq!(lock.version(&source), Some(&version));

    let installed = CliConfig::default().places(tofu.folder());
    let found = installed.find(&source, &Constraints::default(), lock.version(&source)).unwrap();
    assert!(found.binary.starts_with(tofu.folder().join(".terraform/providers")), "{}", found.binary.display());

    // In a folder without an installation, the mirror of the CLI configuration serves.
    let mirrored = CliConfig::read(tofu.config()).unwrap().places(folder.path());
    let found = mirrored.find(&source, &"~> 0.14".parse().unwrap(), None).unwrap();
    assert_eq!(found.version, Some(version));
    assert_eq!(found.binary, parts::provider("hashicorp/time"));
}
