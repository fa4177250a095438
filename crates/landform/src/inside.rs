//! Providers that come with this program: they run inside of it, or as a plugin of any OpenTofu.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use clap::ValueEnum;
use landform_gateway::Gateway;
use landform_protocol::Provider;
use landform_protocol::wire::Version;
use landform_provider_kit::{Bytes, Guard, Kit, Service, Shortcut, http, serve};
use landform_runner::built_in::BuiltIn;
use landform_sdwan::versa::{self, Versa};

use crate::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Inside {
    /// Branches of an SD-WAN at a Versa Director
    Versa,
}

impl Inside {
    pub fn source(self) -> &'static str {
        match self {
            Inside::Versa => versa::SOURCE,
        }
    }

    pub fn version(self) -> &'static str {
        match self {
            Inside::Versa => versa::VERSION,
        }
    }

    /// What OpenTofu starts is named after the provider: this program, under another name.
    pub fn by_program_name(program: Option<&OsStr>) -> Option<Inside> {
        let name = Path::new(program?).file_name()?.to_str()?.to_owned();
        name.starts_with("terraform-provider-versa").then_some(Inside::Versa)
    }

    /// Serves as a plugin until whoever started it is gone.
    pub async fn serve(self) -> Result<(), Failure> {
        let service = match self {
            Inside::Versa => Service::new(Version::V6, Guard(Kit::new(Versa::default()))),
        };
        let hint = "OpenTofu starts it; see docs/versa.md.";
        serve(Arc::new(service)).await.map_err(|error| Failure::usage(error.to_string(), hint))
    }
}

/// All of them, for the native engine.
pub fn built_in(shortcut: Option<ToGateway>) -> BuiltIn {
    let versa = Versa(shortcut.map(|shortcut| -> Arc<dyn Shortcut> { Arc::new(shortcut) }));
    let maker = move || -> Arc<dyn Provider> { Arc::new(Guard(Kit::new(versa.clone()))) };
    BuiltIn::default().with(versa::SOURCE, versa::VERSION, Arc::new(maker))
}

/// From providers inside of this program to its gateway, which starts after them; until then they use its socket.
#[derive(Clone, Default)]
pub struct ToGateway(Arc<OnceLock<Gateway>>);

impl ToGateway {
    pub fn open(&self, gateway: Gateway) {
        // There is one gateway in a program.
        let _ = self.0.set(gateway);
    }
}

#[async_trait]
impl Shortcut for ToGateway {
    fn leads_to(&self, url: &str) -> bool {
        self.0.get().is_some_and(|gateway| gateway.is_at(url))
    }

    async fn send(&self, request: http::Request<Bytes>) -> http::Response<Bytes> {
        match self.0.get() {
            Some(gateway) => gateway.call(request).await,
            None => unreachable!("it leads nowhere, as was said"),
        }
    }
}
