//! `landform tf console`: an expression a line, or over several lines while a bracket is open.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use landform_engine::{EngineError, native};

use super::Failure;
use super::commands::{engine, open, read_state};
use super::diagnostics;
use super::options::{Common, ConsoleOptions};

pub async fn console(folder: &Path, options: &ConsoleOptions) -> Result<ExitCode, Failure> {
    let common = Common { variables: options.variables.clone(), ..Common::default() };
    let variables = native::collect_variables(folder, &common.variable_flags()?)?;
    let opened = open(folder, variables, read_state(&options.state)?)?;
    let console = engine(folder, &common).console(&opened.workspace).await?;
    let input = std::io::stdin();
    // Somebody at a terminal goes on after a mistake; a script does not.
    let talking = input.is_terminal();
    let mut pending = Pending::default();
    loop {
        if talking {
            print!("{}", if pending.lines.is_empty() { "> " } else { ": " });
            std::io::stdout().flush()?;
        }
        let mut line = String::new();
        if input.lock().read_line(&mut line)? == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let Some(whole) = pending.with(line.trim()) else { continue };
        match whole.trim() {
            "" if talking => {}
            "" => println!(),
            "exit" => return Ok(ExitCode::SUCCESS),
            "help" => println!("{HELP}"),
            _ => match console.answer(&whole) {
                Ok(answer) => println!("{answer}"),
                Err(error) if talking => diagnostics::failure(&Failure::Engine(error), false),
                Err(error @ EngineError::Unsupported(_)) => return Err(error.into()),
                Err(error) => {
                    diagnostics::failure(&Failure::Engine(error), false);
                    return Ok(ExitCode::FAILURE);
                }
            },
        }
    }
}

const HELP: &str = "The OpenTofu console allows you to experiment with OpenTofu interpolations.
You may access resources in the state (if you have one) just as you would
from a configuration. For example: \"aws_instance.foo.id\" would evaluate
to the ID of \"aws_instance.foo\" if it exists in your state.

Type in the interpolation to test and hit <enter> to see the result.

To exit the console, type \"exit\" and hit <enter>, or use Control-C or
Control-D.";

/// Lines that are not an expression yet: a bracket is open, or the last one ends with a backslash.
#[derive(Default)]
struct Pending {
    lines: Vec<String>,
    /// Braces, brackets and parentheses that are open. As in OpenTofu, one that was closed too often stays so.
    open: [i64; 3],
}

impl Pending {
    /// All lines so far, if they are whole with this one.
    fn with(&mut self, line: &str) -> Option<String> {
        let goes_on = line.ends_with('\\') && !line.ends_with("\\\\");
        let line = line.strip_suffix('\\').unwrap_or(line);
        if !line.is_empty() {
            self.lines.push(line.to_owned());
            for (open, more) in self.open.iter_mut().zip(opened(line)) {
                *open += more;
            }
        }
        let closed_too_often = self.open.iter().any(|open| *open < 0);
        let waits = !closed_too_often && (goes_on || self.open.iter().any(|open| *open > 0));
        (!waits).then(|| std::mem::take(&mut self.lines).join("\n"))
    }
}

/// How many more braces, brackets and parentheses a line opens than it closes; those in texts and comments are none.
fn opened(line: &str) -> [i64; 3] {
    /// Where in a line something stands: in a text, or in the code of it or of a template in a text, so many braces deep.
    enum In {
        Text,
        Code(usize),
    }
    let (mut open, mut within) = ([0; 3], vec![In::Code(0)]);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (mut length, inside) = (first.len_utf8(), within.len() > 1);
        match (within.last_mut(), first) {
            (Some(In::Text), '\\') => length += rest[length..].chars().next().map_or(0, char::len_utf8),
            (Some(In::Text), '"') => drop(within.pop()),
            (Some(In::Text), _) if rest.starts_with("$${") || rest.starts_with("%%{") => length = 3,
            (Some(In::Text), _) if rest.starts_with("${") || rest.starts_with("%{") => {
                length = 2;
                within.push(In::Code(0));
            }
            (Some(In::Text), _) => {}
            (_, '"') => within.push(In::Text),
            (_, '#') => break,
            (_, '/') if rest.starts_with("//") => break,
            (_, '/') if rest.starts_with("/*") => length = rest.find("*/").map_or(rest.len(), |end| end + 2),
            // The end of a template is no brace.
            (Some(In::Code(0)), '}') if inside => drop(within.pop()),
            (Some(In::Code(deep)), '{') => {
                *deep += 1;
                open[0] += 1;
            }
            (Some(In::Code(deep)), '}') => {
                *deep = deep.saturating_sub(1);
                open[0] -= 1;
            }
            (_, '[') => open[1] += 1,
            (_, ']') => open[1] -= 1,
            (_, '(') => open[2] += 1,
            (_, ')') => open[2] -= 1,
            _ => {}
        }
        rest = &rest[length..];
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_texts_and_comments_are_none() {
        assert_eq!(opened("{ a = [1, f("), [1, 1, 1]);
        assert_eq!(opened(r#""{[(" # ((("#), [0, 0, 0]);
        assert_eq!(opened(r#""a ${f({ b = "}" })} {""#), [0, 0, 0]);
        assert_eq!(opened(r#""$${" + "\"{" /* { */ + 1 // ["#), [0, 0, 0]);
        assert_eq!(opened("})]"), [-1, -1, -1]);
    }

    #[test]
    fn lines_are_waited_for_while_a_bracket_is_open() {
        let mut pending = Pending::default();
        assert_eq!([pending.with("{"), pending.with(""), pending.with("a = 1")], [None, None, None]);
        assert_eq!(pending.with("}").as_deref(), Some("{\na = 1\n}"));
        assert_eq!((pending.with("1 + \\"), pending.with("2").as_deref()), (None, Some("1 + \n2")));
        assert_eq!(pending.with("1)").as_deref(), Some("1)"));
        assert_eq!(pending.with("(").as_deref(), Some("("));
    }
}
