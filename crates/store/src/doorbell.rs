use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::watch;

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
pub(crate) struct Bell(watch::Sender<u64>);

impl Bell {
    pub(crate) fn new() -> Bell {
        Bell(watch::Sender::new(0))
    }

    pub(crate) fn ring(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn listen(&self) -> Doorbell {
        Doorbell(self.0.subscribe())
    }
}

const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Rings for what other processes commit. Ends when aborted.
pub(crate) async fn listen_to_postgres(pool: sqlx::PgPool, bell: Bell) {
    while !pool.is_closed() {
        if let Err(error) = forward(&pool, &bell).await {
            tracing::warn!(%error, "not listening for news; asking by time until the database is back");
        }
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

async fn forward(pool: &sqlx::PgPool, bell: &Bell) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.ignore_pool_close_event(false);
    listener.listen("landform").await?;
    loop {
        listener.recv().await?;
        bell.ring();
    }
}
