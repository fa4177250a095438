//! Stand-ins for clouds that nobody can have on a machine of their own: SD-WAN vendors' management APIs.
//!
//! A simulator speaks the vendor's interface well enough for the vendor's own client, keeps a ledger of what exists and
//! a log of every call, holds to the vendor's published rate limits, and breaks on demand. Creating is as little
//! idempotent as it is at the vendor: asked twice, it makes two. All of it is in memory and ends with the process.
//!
//! Absent on purpose: anything of Landform. What is tested against a simulator must not share code with it.

mod calls;
mod control;
mod desk;
mod faults;
mod limits;

pub mod cato;
mod json;
pub mod versa;

pub use desk::Options;
pub use limits::{Limits, LimitsError, Window};

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A simulator that runs until it is dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Running {
    pub async fn start(vendor: Vendor, listener: TcpListener, options: Options) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let router = match vendor {
            Vendor::Cato => cato::router(options),
            Vendor::Versa => versa::router(options),
        };
        let task = tokio::spawn(async move {
            // Serving ends only with the task: errors of single connections are not reported here.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends.
    pub async fn forever(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Cato,
    Versa,
}

impl Vendor {
    /// The limits that the vendor publishes.
    pub fn limits(self) -> Limits {
        match self {
            Vendor::Cato => cato::published_limits(),
            Vendor::Versa => Limits::none(),
        }
    }
}
