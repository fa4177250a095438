use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::case::Variant;
use super::normal;
use super::observe::{Observed, Streams};
use super::sides::Left;
use crate::{parts, probe};

/// OpenTofu's side of a story.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Of the story and of the versions of all that took part in it.
    pub key: String,
    pub observed: Vec<Observed>,
    /// Where the story asks for them.
    pub streams: Vec<Streams>,
    pub left: Option<Left>,
    /// The exit code of OpenTofu's own plan from there: 0, unless the story never comes to rest.
    pub again: Option<i32>,
}

impl Recording {
    pub fn key(variant: &Variant) -> String {
        let mut hasher = Sha256::new();
        hasher.update(variant.name());
        // Which engine is to tell the story is no part of it.
        let judged = ["left to the cli: ", "known difference: ", "text differs: "];
        let told = |line: &&str| !judged.iter().any(|word| line.starts_with(word));
        variant.case.text.lines().filter(told).for_each(|line| hasher.update(format!("{line}\n")));
        hasher.update(parts::tofu_version());
        for provider in &variant.case.providers {
            hasher.update(match provider.as_str() {
                "probe" => probe::VERSION.to_owned(),
                "coder" => parts::provider_version("coder/coder"),
                "time" => parts::provider_version("hashicorp/time"),
                // A machine that does not have it does not ask for the recording either.
                "aws" => parts::aws().map(|aws| aws.version).unwrap_or_default(),
                other => other.to_owned(),
            });
        }
        hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    fn path(variant: &Variant) -> PathBuf {
        variant.case.folder.join("recordings").join(format!("{}.json.gz", variant.name()))
    }

    /// None: there is none, or it is of another story.
    pub fn of(variant: &Variant) -> Result<Option<Recording>> {
        let path = Recording::path(variant);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let text = std::io::read_to_string(GzDecoder::new(file))?;
        // One of an older form is none.
        let Ok(mut recording) = serde_json::from_str::<Recording>(&text) else { return Ok(None) };
        // It may be older than a rule of what is compared.
        for observed in &mut recording.observed {
            observed.shown = observed.shown.take().map(normal::plan);
            observed.state = observed.state.take().map(normal::state);
        }
        Ok(Some(recording).filter(|recording| recording.key == Recording::key(variant)))
    }

    pub fn write(&self, variant: &Variant) -> Result<()> {
        let path = Recording::path(variant);
        std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        let mut encoder = GzEncoder::new(File::create(path)?, Compression::best());
        serde_json::to_writer(&mut encoder, self)?;
        encoder.finish()?.sync_all()?;
        Ok(())
    }
}
