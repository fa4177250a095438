use reqwest::Method;

use super::{ANSWER, Client, ClientError, Location, deployment_path};
use crate::{StateEdited, StateMove, StateRemove, StateVersion, StateVersionList};

impl Client {
    /// The state in format 4, as any `tofu` reads it.
    pub async fn state(&self, location: &Location) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("{}/state", deployment_path(location))).await
    }

    /// The versions that are kept, the newest first.
    pub async fn state_versions(&self, location: &Location) -> Result<Vec<StateVersion>, ClientError> {
        let path = format!("{}/state/versions", deployment_path(location));
        self.get(&path).await.map(|list: StateVersionList| list.versions)
    }

    pub async fn state_version(&self, location: &Location, version: i64) -> Result<Vec<u8>, ClientError> {
        self.bytes(&format!("{}/state/versions/{version}", deployment_path(location))).await
    }

    pub async fn state_remove(&self, location: &Location, wanted: &StateRemove) -> Result<StateEdited, ClientError> {
        let path = format!("{}/state/remove", deployment_path(location));
        self.read(self.request(Method::POST, &path).json(wanted)).await
    }

    pub async fn state_move(&self, location: &Location, wanted: &StateMove) -> Result<StateEdited, ClientError> {
        let path = format!("{}/state/move", deployment_path(location));
        self.read(self.request(Method::POST, &path).json(wanted)).await
    }

    async fn bytes(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        let response = self.send(self.request(Method::GET, path).timeout(ANSWER)).await?;
        response.bytes().await.map(Vec::from).map_err(|e| self.unreachable(&e))
    }
}
