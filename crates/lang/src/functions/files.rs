//! Files of the configuration. What is outside of its folder is not seen: evaluation happens in a process that serves
//! everybody.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landform_cty::{Marks, Type, Value, quote_as_go};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem, a_bool, a_string, shown};

const PATH: Parameter = Parameter::new("path", Kind::String);

/// Larger files are not read.
const MAX_FILE: u64 = 16 << 20;

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("file", &[PATH.or_marked()], a_string, |call| {
        Ok(Value::string(read_text(call)?).with_marks(&call.args[0].marks))
    }),
    Function::new("filebase64", &[PATH.or_marked()], a_string, |call| {
        let bytes = read(call)?;
        Ok(Value::string(STANDARD.encode(bytes)).with_marks(&call.args[0].marks))
    }),
    Function::new("fileexists", &[PATH.or_marked()], a_bool, exists),
    Function::new(
        "fileset",
        &[PATH.or_marked(), Parameter::new("pattern", Kind::String).or_marked()],
        |_| Ok(Type::set(Type::String)),
        file_set,
    ),
    Function::new("basename", &[PATH], a_string, |call| Ok(Value::string(base_name(call.text(0))))),
    Function::new("dirname", &[PATH], a_string, |call| Ok(Value::string(folder_name(call.text(0))))),
    Function::new("abspath", &[PATH], a_string, |call| {
        let folder = folder(call)?;
        let folder = folder.to_str().ok_or_else(|| Problem::Unsupported("a folder whose name is not text".into()))?;
        let path = call.text(0);
        Ok(Value::string(clean(&if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") })))
    }),
    Function::new("pathexpand", &[PATH], a_string, |call| match call.text(0) {
        path if path.starts_with('~') => Err(Problem::Unsupported("a home folder".into())),
        path => Ok(Value::string(path)),
    }),
];

/// The folder that can be seen, without any links on the way to it.
fn folder(call: &Call<'_>) -> Result<PathBuf, Problem> {
    let folder = call.scope.world().folder.ok_or_else(|| Problem::Unsupported("in this place".into()))?;
    folder.canonicalize().map_err(|error| Problem::Call(format!("the configuration's folder cannot be read: {error}")))
}

/// Where a path leads, if it leads into the folder.
fn place(call: &Call<'_>, path: &str) -> Result<PathBuf, Problem> {
    let outside = || Problem::Unsupported("a file outside of the configuration's folder".into());
    if path.starts_with('~') {
        return Err(outside());
    }
    let folder = folder(call)?;
    let wanted = Path::new(path);
    let whole = if wanted.is_absolute() { wanted.to_path_buf() } else { folder.join(wanted) };
    let whole = PathBuf::from(clean(whole.to_str().ok_or_else(outside)?));
    // The longest part that exists tells where the path really leads.
    let mut existing = whole.as_path();
    let real = loop {
        match existing.canonicalize() {
            Ok(real) => break real,
            Err(_) => existing = existing.parent().ok_or_else(outside)?,
        }
    };
    if real.starts_with(&folder) { Ok(whole) } else { Err(outside()) }
}

fn read(call: &Call<'_>) -> Result<Vec<u8>, Problem> {
    read_at(call, call.text(0), &call.args[0].marks)
}

fn read_at(call: &Call<'_>, path: &str, marks: &Marks) -> Result<Vec<u8>, Problem> {
    let place = place(call, path)?;
    let fail = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Problem::Argument(
            0,
            format!(
                "no file exists at {}; this function works only with files that are distributed as part of the \
                 configuration source code, so if this file will be created by a resource in this configuration you \
                 must instead obtain this result from an attribute of that resource",
                shown(&quote_as_go(path), marks)
            ),
        ),
        ErrorKind::IsADirectory => {
            Problem::Argument(0, format!("failed to read file: read {}: is a directory", clean(path)))
        }
        _ => Problem::Argument(0, format!("failed to read file: {error}")),
    };
    let size = std::fs::metadata(&place).map_err(fail)?;
    if size.is_dir() {
        return Err(fail(ErrorKind::IsADirectory.into()));
    }
    if !size.is_file() || size.len() > MAX_FILE {
        return Err(Problem::Unsupported("a file this large, or no ordinary file".into()));
    }
    std::fs::read(&place).map_err(fail)
}

/// For hashes, which say less about what is wrong.
pub(super) fn read_plain(call: &Call<'_>) -> Result<Vec<u8>, Problem> {
    read(call).map_err(|problem| match problem {
        Problem::Argument(_, message) if message.starts_with("no file exists") => {
            Problem::Call(format!("open {}: no such file or directory", clean(call.text(0))))
        }
        Problem::Argument(_, message) => Problem::Call(message.replacen("failed to read file: ", "", 1)),
        other => other,
    })
}

/// The text of the file that the first argument names.
pub(super) fn read_text(call: &Call<'_>) -> Result<String, Problem> {
    let bytes = read(call)?;
    String::from_utf8(bytes).map_err(|_| {
        let path = shown(&quote_as_go(call.text(0)), &call.args[0].marks);
        Problem::Call(format!(
            "contents of {path} are not valid UTF-8; use the filebase64 function to obtain the Base64 encoded \
             contents or the other file functions (e.g. filemd5, filesha256) to obtain file hashing results instead"
        ))
    })
}

fn exists(call: &mut Call<'_>) -> Outcome {
    let place = place(call, call.text(0))?;
    let marks = &call.args[0].marks;
    match std::fs::metadata(&place) {
        Ok(found) if found.is_file() => Ok(Value::bool(true).with_marks(marks)),
        Ok(found) if found.is_dir() => {
            let path = shown(&quote_as_go(&clean(call.text(0))), marks);
            Err(Problem::Call(format!("{path} is a directory, not a file")))
        }
        Ok(_) => Err(Problem::Unsupported("no ordinary file".into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Value::bool(false).with_marks(marks)),
        Err(_) => {
            let path = shown(&quote_as_go(&clean(call.text(0))), marks);
            Err(Problem::Call(format!("failed to stat {path}")))
        }
    }
}

fn file_set(call: &mut Call<'_>) -> Outcome {
    let start = place(call, call.text(0))?;
    let pattern = clean(call.text(1));
    if call.text(1).split('/').any(|part| part == "..") || call.text(1).starts_with('/') {
        return Err(Problem::Unsupported("a pattern that leads outside".into()));
    }
    let glob = super::glob::Glob::parse(&pattern).ok_or_else(|| Problem::Unsupported("this pattern".into()))?;
    let root = folder(call)?;
    let mut found = Vec::new();
    let mut open = vec![(start, String::new())];
    while let Some((folder, prefix)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            call.budget.spend_steps(1)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if glob.could_match_below(&path) {
                    open.push((entry.path(), path));
                }
                continue;
            }
            if !glob.matches(&path) {
                continue;
            }
            match entry.path().canonicalize() {
                Ok(real) if real.starts_with(&root) => {
                    if real.is_file() {
                        found.push(Value::string(path));
                    }
                }
                _ => return Err(Problem::Unsupported("a link that leads outside or nowhere".into())),
            }
        }
    }
    let marks: Marks = call.args.iter().flat_map(|argument| argument.marks.clone()).collect();
    Ok(Value::set(Type::String, found).with_marks(&marks))
}

fn base_name(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/".to_owned() } else { trimmed.rsplit('/').next().unwrap_or(trimmed).to_owned() }
}

fn folder_name(path: &str) -> String {
    match path.rfind('/') {
        Some(at) => clean(&path[..=at]),
        None => ".".to_owned(),
    }
}

/// The shortest path that is the same by its words alone, as Go's `filepath.Clean` has it.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => match parts.last() {
                Some(&"..") | None if !rooted => parts.push(".."),
                None => {}
                Some(_) => drop(parts.pop()),
            },
            Component::Normal(part) => parts.push(part.to_str().unwrap_or_default()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    match (rooted, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}
