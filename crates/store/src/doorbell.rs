use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::{Notify, watch};

/// Says that something was committed, never what. Whoever hears it looks into the store; whoever misses it looks a
/// little later, because every wait also ends by time.
#[derive(Clone, Debug)]
pub struct Doorbell(watch::Receiver<u64>);

impl Doorbell {
    /// Returns when there may be news, at the latest after `at_most`. News between two calls is not lost.
    pub async fn rung(&mut self, at_most: Duration) {
        // An error means that the store is closed; then only time passes.
        if let Ok(Err(_)) = tokio::time::timeout(at_most, self.0.changed()).await {
            tokio::time::sleep(at_most).await;
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Bell {
    here: watch::Sender<u64>,
    /// There is something to tell other processes.
    news: Arc<Notify>,
}

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell { here: watch::Sender::new(0), news: Arc::default() }
    }

    /// After a commit.
    pub(crate) fn ring(&self) {
        self.ring_here();
        self.news.notify_one();
    }

    fn ring_here(&self) {
        self.here.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn listen(&self) -> Doorbell {
        Doorbell(self.here.subscribe())
    }
}

const RECONNECT_AFTER: Duration = Duration::from_secs(1);
const BETWEEN_NEWS: Duration = Duration::from_millis(20);

/// Rings for what other processes commit, and tells them what is committed here. Ends when aborted.
///
/// Telling is no part of any transaction: NOTIFY takes a lock over the whole database until its commit is on disk, so
/// writers would flush one after the other. Here one goes out for all news of some milliseconds. One that is lost with
/// its process is made up for by time, as is everything about a doorbell.
pub(crate) async fn connect_to_postgres(pool: sqlx::PgPool, bell: Bell) {
    let own = format!("{:x}", RandomState::new().build_hasher().finish());
    tokio::join!(tell(&pool, &bell, &own), listen(&pool, &bell, &own));
}

async fn tell(pool: &sqlx::PgPool, bell: &Bell, own: &str) {
    while !pool.is_closed() {
        bell.news.notified().await;
        if let Err(error) = sqlx::query("SELECT pg_notify('landform', $1)").bind(own).execute(pool).await {
            tracing::debug!(%error, "other processes were not told; they ask by time");
        }
        tokio::time::sleep(BETWEEN_NEWS).await;
    }
}

async fn listen(pool: &sqlx::PgPool, bell: &Bell, own: &str) {
    while !pool.is_closed() {
        if let Err(error) = forward(pool, bell, own).await {
            tracing::warn!(%error, "not listening for news; asking by time until the database is back");
        }
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

async fn forward(pool: &sqlx::PgPool, bell: &Bell, own: &str) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.ignore_pool_close_event(false);
    listener.listen("landform").await?;
    loop {
        if listener.recv().await?.payload() != own {
            bell.ring_here();
        }
    }
}
