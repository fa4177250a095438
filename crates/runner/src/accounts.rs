//! Which vendors' accounts this worker calls. A vendor counts an account's calls whoever makes them, so one process makes
//! them at a time: the account's owner. What it has called is written down for the next one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use landform_gateway::{Gateway, Handover};
use landform_store::{Ownership, Store, StoreError, WorkerId};

/// An account that nobody needed for so long is anybody's again.
const IDLE: Duration = Duration::from_secs(600);

pub(crate) struct Accounts {
    store: Store,
    me: WorkerId,
    gateway: Gateway,
    owned: Mutex<HashMap<String, Owned>>,
    /// One question at a time about what is whose: an account that is being given up is not taken meanwhile.
    asking: tokio::sync::Mutex<()>,
}

struct Owned {
    until: Instant,
    used: Instant,
    /// So many calls are written down in the store.
    written: u64,
}

impl Accounts {
    pub(crate) fn new(store: Store, me: WorkerId, gateway: Gateway) -> Accounts {
        Accounts { store, me, gateway, owned: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<String, Owned>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None: the account is ours, and stays so while whoever asks has a seat there. Otherwise it is this worker's.
    pub(crate) async fn own(&self, key: &str) -> Result<Option<WorkerId>, StoreError> {
        if self.is_known(key) {
            return Ok(None);
        }
        let _one = self.asking.lock().await;
        if self.is_known(key) {
            return Ok(None);
        }
        let now = Instant::now();
        if let Ownership::OwnedBy(other) = self.store.own_account(&self.me, key).await? {
            return Ok(Some(other));
        }
        if let Some(legacy) = self.store.inherit_account(&self.me, key).await? {
            if let Some(past) = Handover::from_json(&legacy.calls) {
                self.gateway.inherit(key, &past, legacy.written_ago);
            }
            if !legacy.is_whole {
                self.gateway.inherit_unknown(key);
            }
        }
        let until = now + self.store.account_lease();
        self.gateway.owns(key, until);
        self.owned().insert(key.to_owned(), Owned { until, used: now, written: 0 });
        Ok(None)
    }

    fn is_known(&self, key: &str) -> bool {
        let now = Instant::now();
        let mut owned = self.owned();
        let Some(owned) = owned.get_mut(key).filter(|owned| owned.until > now) else { return false };
        owned.used = now;
        // The gateway may have forgotten an account that was quiet.
        self.gateway.owns(key, owned.until);
        true
    }

    /// Keeps what is used, gives up what is not, and writes down what was called, until it is dropped.
    pub(crate) async fn keep(&self) {
        loop {
            tokio::time::sleep(self.store.lease() / 3).await;
            if let Err(error) = self.renew().await {
                tracing::warn!(%error, "the vendors' accounts could not be renewed");
            }
        }
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let _one = self.asking.lock().await;
        let now = Instant::now();
        let is_idle = |key: &String, owned: &mut Owned| owned.used + IDLE < now && !self.gateway.is_used(key);
        let idle: Vec<String> = self.owned().extract_if(is_idle).map(|(key, _)| key).collect();
        self.write_down(idle, true).await?;
        if self.owned().is_empty() {
            return Ok(());
        }
        let kept = self.store.renew_accounts(&self.me).await?;
        let changed: Vec<String> = {
            let until = now + self.store.account_lease();
            let mut owned = self.owned();
            owned.retain(|key, _| kept.binary_search(key).is_ok());
            for (key, owned) in owned.iter_mut() {
                owned.until = until;
                self.gateway.owns(key, until);
            }
            let news = owned.iter().filter(|(key, owned)| self.gateway.sent(key) != owned.written);
            news.map(|(key, _)| key.clone()).collect()
        };
        self.write_down(changed, false).await
    }

    /// The end: what was called stands in the store, and the accounts are anybody's.
    pub(crate) async fn give_up(&self) -> Result<(), StoreError> {
        let _one = self.asking.lock().await;
        let all: Vec<String> = self.owned().drain().map(|(key, _)| key).collect();
        self.write_down(all, true).await?;
        self.store.free_accounts(&self.me).await
    }

    async fn write_down(&self, keys: Vec<String>, last_word: bool) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let past = |key: &String| self.gateway.past(key).map_or_else(|| "{}".to_owned(), |past| past.to_json());
        let sent: Vec<u64> = keys.iter().map(|key| self.gateway.sent(key)).collect();
        let pasts: Vec<(String, String)> = keys.into_iter().map(|key| (key.clone(), past(&key))).collect();
        self.store.leave_accounts(&self.me, &pasts, last_word).await?;
        let mut owned = self.owned();
        for ((key, _), sent) in pasts.iter().zip(sent) {
            if let Some(owned) = owned.get_mut(key) {
                owned.written = sent;
            }
        }
        Ok(())
    }
}
