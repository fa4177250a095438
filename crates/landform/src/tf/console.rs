//! `landform tf console`: an expression a line.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use landform_engine::native;

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
    loop {
        if talking {
            print!("> ");
            std::io::stdout().flush()?;
        }
        let mut line = String::new();
        if input.lock().read_line(&mut line)? == 0 || line.trim() == "exit" {
            return Ok(ExitCode::SUCCESS);
        }
        if line.trim().is_empty() {
            continue;
        }
        match console.answer(line.trim()) {
            Ok(answer) => println!("{answer}"),
            Err(error) if talking => diagnostics::failure(&Failure::Engine(error), false),
            Err(error) => return Err(error.into()),
        }
    }
}
