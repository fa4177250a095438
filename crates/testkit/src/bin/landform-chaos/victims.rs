//! Who is killed.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use landform_testkit::{judge, parts};
use rand::RngExt;
use rand::rngs::StdRng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Landform,
    Provider,
    Cli,
    Database,
}

impl Kind {
    /// By a number below 100: mostly a Landform, seldom the database, which takes a second to come back.
    pub fn drawn(number: u32) -> Kind {
        match number {
            0..60 => Kind::Landform,
            60..80 => Kind::Provider,
            80..97 => Kind::Cli,
            _ => Kind::Database,
        }
    }
}

#[derive(Default)]
pub struct Kills {
    landforms: u32,
    providers: u32,
    clis: u32,
    databases: u32,
}

impl Kills {
    pub fn count(&mut self, kind: Kind) -> bool {
        match kind {
            Kind::Landform => self.landforms += 1,
            Kind::Provider => self.providers += 1,
            Kind::Cli => self.clis += 1,
            Kind::Database => self.databases += 1,
        }
        true
    }

    pub fn total(&self) -> u32 {
        self.landforms + self.providers + self.clis + self.databases
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kills { landforms, providers, clis, databases } = self;
        write!(
            f,
            "{} kills ({landforms} of a Landform, {providers} of a provider, {clis} of an OpenTofu, {databases} of the \
             database)",
            self.total()
        )
    }
}

/// Kills a random process of this kind, if there is one right now.
pub fn kill(kind: Kind, folder: &Path, random: &mut StdRng) -> Result<bool> {
    let tofu = parts::tofu().canonicalize()?;
    let mut candidates = judge::processes_below(folder)?;
    candidates.retain(|process| match kind {
        Kind::Provider => process.program.starts_with(folder),
        _ => process.program == tofu,
    });
    if candidates.is_empty() {
        return Ok(false);
    }
    let victim = &candidates[random.random_range(0..candidates.len())];
    let mut kill = std::process::Command::new("kill");
    kill.args(["-KILL", &victim.pid]).stderr(std::process::Stdio::null());
    Ok(kill.status()?.success())
}
