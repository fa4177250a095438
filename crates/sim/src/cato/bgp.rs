//! BGP peers.

use serde_json::{Map, Value, json};

use super::world::Account;
use crate::json::{merge, text};

impl Account {
    pub fn add_peer(&mut self, input: &Value) -> Result<Value, String> {
        let reference = &input["site"];
        let site = self.referred(reference).ok_or_else(|| format!("Invalid site: {}", text(reference, "input")))?;
        let site = json!({"id": site.id, "name": site.name()});
        let id = self.next_id();
        let mut peer = input.as_object().cloned().unwrap_or_default();
        peer.insert("id".to_owned(), json!(id));
        peer.insert("site".to_owned(), site);
        peer.insert("catoIp".to_owned(), json!("169.254.100.1"));
        let peer = self.numbered(peer);
        self.peers.insert(id, peer.clone());
        Ok(json!({"bgpPeer": peer}))
    }

    pub fn update_peer(&mut self, input: &Value) -> Result<Value, String> {
        let id = text(input, "id");
        let peer = self.peers.get(&id).ok_or_else(|| invalid(&id))?;
        let mut peer = peer.as_object().cloned().unwrap_or_default();
        merge(&mut peer, input.as_object().unwrap_or(&Map::new()));
        let peer = self.numbered(peer);
        self.peers.insert(id, peer.clone());
        Ok(json!({"bgpPeer": peer}))
    }

    pub fn remove_peer(&mut self, input: &Value) -> Result<Value, String> {
        let id = text(input, "id");
        let peer = self.peers.remove(&id).ok_or_else(|| invalid(&id))?;
        Ok(json!({"bgpPeer": peer}))
    }

    /// A peer that does not exist is null, not an error.
    pub fn peer(&self, reference: &Value) -> Value {
        let input = text(reference, "input");
        let by_name = reference["by"] == "NAME";
        let found = self.peers.iter().find(|(id, peer)| if by_name { peer["name"] == *input } else { **id == input });
        found.map_or(Value::Null, |(_, peer)| peer.clone())
    }

    pub fn peers(&self, site: &Value) -> Result<Value, String> {
        let site = self.referred(site).ok_or_else(|| format!("Invalid site: {}", text(site, "input")))?;
        let peers: Vec<_> = self.peers.values().filter(|peer| peer["site"]["id"] == *site.id).collect();
        Ok(json!({"total": peers.len(), "bgpPeer": peers}))
    }

    /// Gives an id to everything in a peer that has one at the vendor and came without.
    fn numbered(&mut self, mut peer: Map<String, Value>) -> Value {
        let rules = peer.get_mut("defaultActionExclusion").and_then(Value::as_array_mut);
        let rules = rules.into_iter().flatten().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
        for rule in rules.filter_map(Value::as_object_mut) {
            self.number(rule);
        }
        let routes = peer.get_mut("summaryRoute").and_then(Value::as_array_mut);
        for route in routes.into_iter().flatten().filter_map(Value::as_object_mut) {
            self.number(route);
        }
        if let Some(Value::Object(tracking)) = peer.get_mut("tracking") {
            self.number(tracking);
        }
        Value::Object(peer)
    }

    fn number(&mut self, object: &mut Map<String, Value>) {
        if !object.contains_key("id") {
            let id = self.next_id();
            object.insert("id".to_owned(), json!(id));
        }
    }
}

fn invalid(id: &str) -> String {
    format!("Invalid BGP peer id: {id}")
}
