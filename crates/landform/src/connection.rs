use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use landform_api::Client;
use landform_base::secret::SecretString;

use crate::failure::Failure;

pub const DEFAULT_LISTEN: &str = "127.0.0.1:7040";
const DEFAULT_SERVER: &str = "http://127.0.0.1:7040";

/// Which server is spoken to, and as whom.
#[derive(Args, Debug)]
pub struct Connection {
    /// The server's address
    #[arg(long, global = true, env = "LANDFORM_SERVER", default_value = DEFAULT_SERVER, value_name = "URL")]
    server: String,
    /// The token to speak with; otherwise the admin token in the data folder is used
    #[arg(long, global = true, env = "LANDFORM_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Certificates (PEM) of the authority that made the server's; otherwise those of the system are trusted
    #[arg(long, global = true, env = "LANDFORM_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The data folder [default: ~/.local/share/landform]
    #[arg(long, global = true, env = "LANDFORM_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Connection {
    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn client(&self) -> Result<Client, Failure> {
        let token = match self.token.as_ref().filter(|token| !token.is_empty()) {
            Some(token) => token.clone(),
            None => self.token_of_data_folder()?,
        };
        if !["http://", "https://"].iter().any(|scheme| self.server.starts_with(scheme)) {
            return Err(Failure::usage(
                format!("{:?} is no address of a server", self.server),
                "Give one such as http://127.0.0.1:7040 with --server or LANDFORM_SERVER.",
            ));
        }
        let token = SecretString::from(token);
        let Some(ca) = &self.ca else { return Ok(Client::new(&self.server, token)?) };
        let authority = std::fs::read(ca).map_err(|e| {
            Failure::usage(format!("{}: {e}", ca.display()), "Name a file of certificates in PEM with --ca.")
        })?;
        Ok(Client::trusting(&self.server, token, &authority)?)
    }

    pub fn data_folder(&self) -> Result<PathBuf, Failure> {
        if let Some(data) = &self.data {
            // Programs that are started from it work in folders of their own.
            return std::path::absolute(data).map_err(|e| Failure::usage(format!("--data: {e}"), "Name a folder."));
        }
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let home = home.ok_or_else(|| Failure::usage("there is no HOME", "Name a folder with --data."))?;
        Ok(PathBuf::from(home).join(".local/share/landform"))
    }

    fn token_of_data_folder(&self) -> Result<String, Failure> {
        let path = token_file(&self.data_folder()?);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let message = format!("no token: {}: {error}", path.display());
            Failure::usage(
                message,
                "Give one with --token or LANDFORM_TOKEN, or name the server's data folder with --data. If all are lost, stop the \
                 server and make one with `landform token admin`.",
            )
        })?;
        Ok(text.trim().to_owned())
    }
}

/// Reads an address to listen on for clap, which would say no more than that it is none.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:7040 or 0.0.0.0:7040".to_owned())
}

pub fn token_file(data: &std::path::Path) -> PathBuf {
    data.join("admin.token")
}
