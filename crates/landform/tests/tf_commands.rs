//! `landform tf` in the place of `tofu`: the commands beside plan and apply, and what is handed over.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use landform_testkit::parts;
use landform_testkit::tofu::Tofu;

const MAIN: &str = r#"
terraform {
  required_providers {
    time = {
      source  = "hashicorp/time"
      version = "~> 0.14, < 1.0.0"
    }
  }
}
variable "word" { default = "x" }
locals { twice = "${var.word}${var.word}" }
resource "time_static" "now" { triggers = { word = local.twice } }
resource "terraform_data" "a" {
  count = 2
  input = { index = count.index, list = [1, "two"] }
}
module "m" { source = "./m" }
"#;

struct Folder {
    tofu: Tofu,
    _temporary: tempfile::TempDir,
}

impl Folder {
    fn new() -> Folder {
        let temporary = tempfile::tempdir().unwrap();
        let tofu = Tofu::new(&temporary.path().join("work"), &parts::mirror()).unwrap();
        tofu.write("main.tf", MAIN).unwrap();
        std::fs::create_dir(tofu.folder().join("m")).unwrap();
        tofu.write("m/main.tf", "resource \"terraform_data\" \"inner\" {}\n").unwrap();
        Folder { tofu, _temporary: temporary }
    }

    fn command(&self, engine: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landform"));
        command.arg("tf").args(args).current_dir(self.tofu.folder());
        command.env("TF_CLI_CONFIG_FILE", self.tofu.config()).env("LANDFORM_ENGINE", engine);
        // The real one, and nothing else that might be on this machine.
        command.env("PATH", parts::tofu().parent().unwrap()).env("CHECKPOINT_DISABLE", "1");
        command
    }

    fn native(&self, args: &[&str]) -> Output {
        let output = self.command("native", args).output().unwrap();
        assert!(output.status.success(), "landform tf {args:?}: {}", text(&output));
        output
    }

    fn tofu(&self, args: &[&str]) -> Output {
        let output = self.tofu.run(args).unwrap();
        assert!(output.status.success(), "tofu {args:?}: {}", text(&output));
        output
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.tofu.folder().join(name)).unwrap()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn feed(mut command: Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn init_leaves_what_tofu_leaves() {
    let (ours, theirs) = (Folder::new(), Folder::new());
    theirs.tofu(&["init", "-no-color"]);
    ours.native(&["init", "-no-color", "-input=false"]);
    assert_eq!(ours.file(".terraform.lock.hcl"), theirs.file(".terraform.lock.hcl"));
    // OpenTofu needs no init of its own, and both find the same once more.
    ours.tofu(&["plan", "-no-color"]);
    let again = text(&ours.native(&["init", "-backend=false", "-reconfigure"]));
    assert!(again.contains("Using previously-installed hashicorp/time"), "{again}");
    let wrong = ours.file(".terraform.lock.hcl").replace("h1:", "h1:x");
    ours.tofu.write(".terraform.lock.hcl", &wrong).unwrap();
    let refused = ours.command("native", &["init"]).output().unwrap();
    assert!(!refused.status.success() && text(&refused).contains("checksums"), "{}", text(&refused));
}

/// Of providers OpenTofu speaks in no order, so lines are compared as a set.
#[test]
fn init_says_what_tofu_says() {
    let (ours, theirs) = (Folder::new(), Folder::new());
    let lines = |output: Output| {
        let said = format!("{:?}\n{}", output.status.code(), text(&output));
        let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let alike = |args: &[&str]| {
        let ours = lines(ours.command("native", args).output().unwrap());
        assert_eq!(ours, lines(theirs.tofu.run(args).unwrap()), "{args:?}");
    };
    let both =
        |name: &str, text: &str| [&ours, &theirs].iter().for_each(|folder| folder.tofu.write(name, text).unwrap());
    alike(&["init"]);
    alike(&["init", "-no-color"]);
    alike(&["init", "-no-color", "-upgrade"]);
    alike(&["init", "-no-color", "-backend=false", "-lockfile=readonly"]);
    alike(&["init", "-no-color", "-upgrade", "-lockfile=readonly"]);
    // Another demand alone changes nothing, and a checksum more is no failure.
    both("main.tf", &MAIN.replace("~> 0.14", "~> 0.13"));
    alike(&["init", "-no-color", "-lockfile=readonly"]);
    assert_eq!(ours.file(".terraform.lock.hcl"), theirs.file(".terraform.lock.hcl"));
    let locked = ours.file(".terraform.lock.hcl");
    both(".terraform.lock.hcl", &locked.replace("  hashes = [", "  hashes = [\n    \"zh:00\","));
    alike(&["init", "-no-color", "-lockfile=readonly"]);
    both(".terraform.lock.hcl", &locked);
    both(
        "more.tf",
        "resource \"coder_agent\" \"a\" {\n  os   = \"linux\"\n  arch = \"amd64\"\n}\nmodule \"n\" { source = \"./m\" }\n",
    );
    let with_coder = MAIN.replace("time = {", "coder = { source = \"coder/coder\" }\n    time = {");
    both("main.tf", &with_coder);
    alike(&["init", "-no-color", "-lockfile=readonly"]);
    alike(&["init", "-no-color"]);
    both("main.tf", &with_coder.replace("~> 0.14", "~> 0.1, < 0.2"));
    alike(&["init", "-no-color"]);
    both("main.tf", "variable \"a\" { nothing = 1 }\n");
    alike(&["init", "-no-color"]);
    for name in ["main.tf", "more.tf"] {
        [&ours, &theirs].iter().for_each(|folder| std::fs::remove_file(folder.tofu.folder().join(name)).unwrap());
    }
    alike(&["init"]);
}

#[test]
fn plans_have_version_constraints_in_the_form_of_tofu() {
    let folder = Folder::new();
    folder.tofu.write("main.tf", &MAIN.replace("~> 0.14, < 1.0.0", "< 1,>=0.5, != 0.6.1, ~> 0.14")).unwrap();
    folder.tofu(&["init"]);
    folder.tofu(&["plan", "-out", "theirs"]);
    folder.native(&["plan", "-out", "ours"]);
    let providers = |output: Output| {
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        plan["configuration"]["provider_config"].clone()
    };
    let theirs = providers(folder.tofu(&["show", "-json", "theirs"]));
    assert!(theirs["time"]["version_constraint"].is_string(), "{theirs}");
    assert_eq!(providers(folder.native(&["show", "-json", "ours"])), theirs);
}

/// What is not in the state has no value, whatever the configuration wants of it.
#[test]
fn the_console_knows_the_state_alone() {
    let folder = Folder::new();
    folder.tofu(&["init"]);
    let ask = |folder: &Folder| {
        for input in [
            "terraform_data.a\nterraform_data.a[0].id\nlength(terraform_data.a)\ntype(time_static.now)\nmodule.m\n",
            "local.twise\n",
        ] {
            let mut theirs = Command::new(parts::tofu());
            theirs.args(["console", "-no-color"]).current_dir(folder.tofu.folder());
            theirs.env("TF_CLI_CONFIG_FILE", folder.tofu.config());
            let ours = feed(folder.command("native", &["console", "-no-color"]), input);
            assert_eq!(text(&ours), text(&feed(theirs, input)));
        }
    };
    ask(&folder);
    folder.tofu(&["apply", "-auto-approve"]);
    folder.tofu(&["state", "rm", "terraform_data.a[1]"]);
    ask(&folder);
}

#[test]
fn the_console_and_single_objects_read_as_tofu_shows_them() {
    let folder = Folder::new();
    folder.tofu(&["init"]);
    folder.tofu(&["apply", "-auto-approve"]);
    let input = "1 + 1\nlocal.twice\nterraform_data.a[1].output\n[for o in terraform_data.a : o.input.index]\n\
                 { a = \"b\", c = null }\ntime_static.now.triggers\ntype({ a = [1] })\nvar.word == \"x\"\n\n{\n  a = [\n\n    1,\n  \
                 ]\n}\n\"${upper(\"{\")}\"\nhelp\nupper(\n";
    let mut theirs = Command::new(parts::tofu());
    theirs.args(["console", "-no-color"]).current_dir(folder.tofu.folder());
    theirs.env("TF_CLI_CONFIG_FILE", folder.tofu.config());
    let (theirs, ours) = (feed(theirs, input), feed(folder.command("native", &["console"]), input));
    assert_eq!(text(&ours), text(&theirs));
    let wrong = feed(folder.command("native", &["console"]), "local.nobody\n1\n");
    assert!(
        !wrong.status.success() && text(&wrong).contains("Reference to undeclared local value"),
        "{}",
        text(&wrong)
    );
    for address in ["terraform_data.a[1]", "time_static.now", "module.m.terraform_data.inner"] {
        let show = ["state", "show", "-no-color", address];
        assert_eq!(text(&folder.native(&show)), text(&folder.tofu(&show)), "{address}");
    }
}

#[test]
fn questions_are_asked_and_answered_as_by_tofu() {
    let asking = "variable \"word\" { description = \"A word,\\nany.\" }\nvariable \"secret\" { ephemeral = true }\n\
                  resource \"terraform_data\" \"a\" { input = var.word }\n";
    let [ours, theirs] = [(); 2].map(|()| {
        let folder = Folder::new();
        folder.tofu.write("main.tf", asking).unwrap();
        folder.tofu(&["init"]);
        folder
    });
    let ask = |args: &[&str], answers: &str| {
        let mut tofu = Command::new(parts::tofu());
        tofu.args(args).current_dir(theirs.tofu.folder()).env("TF_CLI_CONFIG_FILE", theirs.tofu.config());
        let (ours, theirs) = (feed(ours.command("native", args), answers), feed(tofu, answers));
        let said = |output: &Output| {
            let text = text(output);
            let id = |line: &str| line.split_once("[id=").map_or(line, |(before, _)| before).to_owned();
            text.lines().map(id).filter(|line| !line.contains(" id ")).collect::<Vec<_>>()
        };
        assert_eq!((ours.status.code(), said(&ours)), (theirs.status.code(), said(&theirs)), "{args:?} {answers:?}");
    };
    let given = ["-var=word=w", "-var=secret=s"];
    ask(&["plan", "-no-color", "-var=secret=s"], "given\n");
    ask(&["plan", "-no-color"], "");
    ask(&["plan", "-no-color", "-input=false"], "given\n");
    ask(&[&["apply", "-no-color"], &given[..]].concat(), "no\n");
    ask(&[&["apply", "-no-color"], &given[..]].concat(), "");
    ask(&[&["apply"], &given[..]].concat(), "yes\n");
    ask(&[&["destroy", "-no-color"], &given[..]].concat(), "y\n");
    ask(&[&["apply", "-destroy", "-no-color"], &given[..]].concat(), "yes\n");
}

#[test]
fn edits_of_a_state_keep_the_one_before() {
    let folder = Folder::new();
    folder.tofu.write("main.tf", "resource \"terraform_data\" \"a\" {}\n").unwrap();
    folder.native(&["apply", "-auto-approve", "-state=new/place.tfstate"]);
    folder.native(&["apply", "-auto-approve"]);
    folder.native(&["state", "rm", "terraform_data.a"]);
    let names = std::fs::read_dir(folder.tofu.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let backups: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".backup")).collect();
    let [dated] = &backups[..] else { panic!("{backups:?}") };
    assert_ne!(dated, "terraform.tfstate.backup");
    assert!(folder.file(dated).contains("terraform_data"));
    assert!(folder.file("new/place.tfstate").contains("terraform_data"));
    // What is left has nothing in it, and a state can be shown wherever it lies.
    for args in [&["show", "-no-color"][..], &["show", "-json"], &["show", "-no-color", "new/place.tfstate"]] {
        assert_eq!(text(&folder.native(args)), text(&folder.tofu(args)), "{args:?}");
    }
}

#[test]
fn what_is_outside_is_handed_to_tofu_or_refused_with_the_reason() {
    let folder = Folder::new();
    folder.tofu(&["init"]);
    let plan = ["plan", "-no-color", "-out=saved", "-target=terraform_data.a"];
    let refused = folder.command("native", &plan).output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    assert!(text(&refused).contains("flag -target"), "{}", text(&refused));
    let handed = folder.command("auto", &plan).output().unwrap();
    assert!(handed.status.success(), "{}", text(&handed));
    assert!(String::from_utf8_lossy(&handed.stderr).contains("flag -target"), "{}", text(&handed));
    // What OpenTofu has planned, OpenTofu applies.
    let applied = folder.command("auto", &["apply", "-no-color", "saved"]).output().unwrap();
    assert!(text(&applied).contains("Apply complete! Resources: 2 added"), "{}", text(&applied));
    let workspaces = folder.command("auto", &["workspace", "list"]).output().unwrap();
    assert!(text(&workspaces).contains("* default"), "{}", text(&workspaces));
    let more = "resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" {\n    command = \"true\"\n  }\n}\n";
    folder.tofu.write("more.tf", more).unwrap();
    let refused = folder.command("native", &["plan"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused));
    assert!(text(&refused).contains("provisioner block (more.tf:2)"), "{}", text(&refused));
    std::fs::remove_file(folder.tofu.folder().join("more.tf")).unwrap();
    let nobody = folder.command("sometimes", &["plan"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(1), "{}", text(&nobody));
}

/// The state is at the backend, or in a file of the workspace: the one beside the configuration would be taken for nothing,
/// and everything made a second time.
#[test]
fn a_state_that_is_somewhere_else_is_left_to_tofu() {
    let folder = Folder::new();
    let refuses = |args: &[&str], why: &str| {
        let refused = folder.command("native", args).output().unwrap();
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {}", text(&refused));
        assert!(text(&refused).contains(why), "{args:?}: {}", text(&refused));
    };
    folder.tofu.write("backend.tf", "terraform {\n  backend \"local\" { path = \"far/away.tfstate\" }\n}\n").unwrap();
    for args in [&["init"][..], &["plan"], &["apply", "-auto-approve"], &["output"], &["state", "list"]] {
        refuses(args, "backend block (backend.tf:2)");
    }
    for args in [&["init"][..], &["apply", "-auto-approve", "-no-color"]] {
        let handed = folder.command("auto", args).output().unwrap();
        assert!(handed.status.success(), "{args:?}: {}", text(&handed));
    }
    assert!(folder.tofu.folder().join("far/away.tfstate").exists());
    let listed = folder.command("auto", &["state", "list"]).output().unwrap();
    assert!(text(&listed).contains("module.m.terraform_data.inner"), "{}", text(&listed));
    // The folder still is where its state is not, until `tofu init` has brought it back.
    std::fs::remove_file(folder.tofu.folder().join("backend.tf")).unwrap();
    refuses(&["plan"], "backend \"local\"");
    folder.tofu(&["init", "-migrate-state", "-force-copy"]);
    folder.native(&["state", "list"]);
    folder.tofu(&["workspace", "new", "blue"]);
    refuses(&["plan"], "workspace \"blue\"");
    let other = folder.command("native", &["state", "list"]).env("TF_WORKSPACE", "default").output().unwrap();
    assert!(other.status.success(), "{}", text(&other));
}

#[test]
fn mistakes_are_shown_with_their_lines_all_at_once() {
    let folder = Folder::new();
    folder.tofu(&["init"]);
    let wrong =
        "resource \"terraform_data\" \"w\" {\n  input = local.nobody\n}\n\noutput \"o\" {\n  value = var.nobody\n}\n";
    folder.tofu.write("wrong.tf", wrong).unwrap();
    let output = folder.command("native", &["plan", "-no-color"]).output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "on wrong.tf line 2, in resource \"terraform_data\" \"w\":\n   2:   input = local.nobody",
        "on wrong.tf line 6, in output \"o\":\n   6:   value = var.nobody",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!Path::new(&folder.tofu.folder().join("terraform.tfstate")).exists(), "nothing was written");
}

/// Boxes, colours, symbols: byte by byte what `tofu` writes where nobody says `-no-color`.
#[test]
fn colours_and_boxes_are_those_of_tofu() {
    let folder = Folder::new();
    let main = r#"
variable "n" { default = 1 }
resource "terraform_data" "a" {
  input            = { a = 1, b = ["x", var.n], c = null, d = "line\nother ${var.n}\n" }
  triggers_replace = var.n
}
resource "terraform_data" "b" {
  count = var.n == 1 ? 1 : 0
  # Otherwise it is a matter of luck which of the two is told of first.
  depends_on = [terraform_data.a]
}
output "o" { value = terraform_data.a.output }
check "one" {
  assert {
    condition     = var.n == 2
    error_message = "This is told in a box of its own, and in as many lines as it takes to say all of this."
  }
}
"#;
    folder.tofu.write("main.tf", main).unwrap();
    folder.tofu(&["init"]);
    let same = |args: &[&str]| {
        let (real, native) = (folder.tofu.run(args).unwrap(), folder.command("native", args).output().unwrap());
        assert_eq!(real.status.code(), native.status.code(), "{args:?}: {}", text(&native));
        assert_eq!(String::from_utf8_lossy(&real.stdout), String::from_utf8_lossy(&native.stdout), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&real.stderr), String::from_utf8_lossy(&native.stderr), "{args:?}");
    };
    same(&["plan"]);
    same(&["validate"]);
    folder.tofu(&["apply", "-auto-approve"]);
    same(&["plan"]);
    same(&["plan", "-var=n=2"]);
    same(&["plan", "-destroy", "-compact-warnings"]);
    same(&["show"]);
    folder.tofu.write("main.tf", &main.replace("var.n == 2", "element(var.n, \"x\") == local.nobody")).unwrap();
    same(&["plan"]);
    same(&["validate"]);
}

/// A create that was interrupted is not made again before somebody has looked, however often that is asked for.
#[test]
fn what_may_have_been_created_is_not_created_again() {
    let folder = Folder::new();
    let main = r#"
terraform {
  required_providers {
    time = { source = "hashicorp/time" }
  }
}
resource "time_sleep" "slow" { create_duration = "4s" }
"#;
    folder.tofu.write("main.tf", main).unwrap();
    folder.native(&["init"]);
    let journal = folder.tofu.folder().join(".terraform.tfstate.journal");
    let apply = ["apply", "-auto-approve"];
    let mut killed = folder.command("native", &apply).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = std::time::Instant::now();
    while !std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("time_sleep.slow")) {
        assert!(begin.elapsed().as_secs() < 60, "the create does not begin");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    for _ in 0..3 {
        let refused = folder.command("native", &apply).output().unwrap();
        let said = text(&refused);
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("time_sleep.slow") && said.contains("landform tf state rm"), "{said}");
    }
    let answered = text(&folder.native(&["state", "rm", "time_sleep.slow"]));
    assert!(answered.contains("no longer in doubt"), "{answered}");
    folder.native(&apply);
    assert!(!folder.tofu.folder().join(".terraform.tfstate.doubts").exists());
}
