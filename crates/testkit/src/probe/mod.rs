//! The provider `landform/probe`: all that a provider may do, right and wrong, on demand.
//!
//! Its objects are lines of a file (see [`world`]). Creating makes a new object with a random id every time; with
//! `ids = "counted"` ids are `NAME-1`, `NAME-2`, … so that two engines can be compared. Every resource has an argument
//! `faults`, a list of words in one text, that makes calls about it go wrong; [`faults`] has the words.
//!
//! `terraform-provider-probe` speaks protocol 6, `terraform-provider-probe5` protocol 5 (without nested attributes,
//! which protocol 5 does not have).

mod data;
mod faults;
mod schemas;
mod thing;
pub mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use async_trait::async_trait;
use landform_cty::Value;
use landform_protocol::wire::Version;
use landform_protocol::{Diagnostic, Schema};
use landform_provider_kit::{DataSources, Definition, Failure, Kit, Resources, block, run, string};

use faults::Faulty;
use world::{Ids, World};

pub const VERSION: &str = "1.0.0";

/// The source address by protocol.
pub fn source(version: Version) -> &'static str {
    match version {
        Version::V5 => "landform/probe5",
        Version::V6 => "landform/probe",
    }
}

/// The program of that source.
pub fn program(version: Version) -> PathBuf {
    crate::programs::path(match version {
        Version::V5 => "terraform-provider-probe5",
        Version::V6 => "terraform-provider-probe",
    })
}

/// Puts the provider into a filesystem mirror, unpacked. Returns the executable's path there.
pub fn install(mirror: &Path, version: Version) -> std::io::Result<PathBuf> {
    let (program, source) = (program(version), source(version));
    let folder = mirror.join("registry.opentofu.org").join(source).join(VERSION).join(crate::parts::platform());
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(program.file_name().expect("a program has a name"));
    crate::programs::link(&program, &path)?;
    Ok(path)
}

/// What the `main` of both programs is.
pub fn main(version: Version) -> ExitCode {
    run(version, Faulty(Kit::new(Probe { version })))
}

/// Where the objects are if the configuration does not say: in the folder that the provider works in.
pub const USUAL_LEDGER: &str = "probe.ledger";

struct Probe {
    version: Version,
}

#[async_trait]
impl Definition for Probe {
    type Client = World;

    fn schema(&self) -> Schema {
        block([
            ("ledger", string().optional().describe("The file with the objects.")),
            ("ids", string().optional().describe("`random` or `counted`.")),
            ("region", string().optional().describe("Shown by every object and every look-up.")),
            ("token", string().optional().sensitive()),
            ("refuse", string().optional().describe("Configuring fails with this text.")),
        ])
    }

    fn resources(&self) -> Resources<World> {
        let things = thing::all(self.version);
        things.into_iter().map(|thing| (thing.name, Box::new(thing) as _)).collect()
    }

    fn data_sources(&self) -> DataSources<World> {
        vec![
            ("probe_lookup", Box::new(data::Lookup)),
            ("probe_echo", Box::new(data::Echo)),
            ("probe_where", Box::new(data::Where)),
        ]
    }

    async fn configure(&self, config: &Value) -> Result<World, Failure> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(reason) = text("refuse") {
            return Err(Diagnostic::error("The provider refuses its configuration", reason).at("refuse").into());
        }
        let ids = match text("ids").as_deref() {
            None | Some("random") => Ids::Random,
            Some("counted") => Ids::Counted,
            Some(other) => {
                let detail = format!("It is \"random\" or \"counted\", not {other:?}.");
                return Err(Diagnostic::error("Unknown kind of ids", detail).at("ids").into());
            }
        };
        let ledger = PathBuf::from(text("ledger").unwrap_or_else(|| USUAL_LEDGER.into()));
        Ok(World::new(ledger, ids, text("region").unwrap_or_else(|| "here".into())))
    }
}
