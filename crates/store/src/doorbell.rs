use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use landform_domain::RunId;
use landform_domain::run::Status;
use sqlx::postgres::PgListener;
use tokio::sync::{Notify, watch};

/// Says that something was committed, never what. Whoever hears it looks into the store; whoever misses it looks a
/// little later, because every wait also ends by time.
#[derive(Debug)]
pub struct Doorbell {
    /// What concerns everybody, or comes from another process, which does not say more.
    everything: watch::Receiver<u64>,
    own: watch::Receiver<u64>,
    _place: Option<Place>,
}

impl Doorbell {
    /// Returns when there may be news, at the latest after `at_most`. News between two calls is not lost.
    pub async fn rung(&mut self, at_most: Duration) {
        let news = async {
            // An error means that the store is closed; then only time passes.
            let closed = tokio::select! {
                news = self.everything.changed() => news.is_err(),
                news = self.own.changed() => news.is_err(),
            };
            if closed {
                std::future::pending::<()>().await;
            }
        };
        let _ = tokio::time::timeout(at_most, news).await;
        // Both are news of one look.
        self.everything.mark_unchanged();
        self.own.mark_unchanged();
    }
}

/// Which news of a run somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// Whatever is written about it.
    Any,
    /// It has ended, or waits for a person.
    Rest,
}

type Topic = (RunId, News);

/// Who listens to single runs.
type Topics = Arc<Mutex<HashMap<Topic, watch::Sender<u64>>>>;

/// Forgets a topic with its last listener.
#[derive(Debug)]
struct Place {
    topics: Topics,
    topic: Topic,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        // This listener counts still.
        if topics.get(&self.topic).is_some_and(|sender| sender.receiver_count() <= 1) {
            topics.remove(&self.topic);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Bell {
    everything: watch::Sender<u64>,
    work: watch::Sender<u64>,
    topics: Topics,
    /// There is something to tell other processes.
    news: Arc<Notify>,
}

impl Bell {
    pub(crate) fn new() -> Bell {
        let (everything, work) = (watch::Sender::new(0), watch::Sender::new(0));
        Bell { everything, work, topics: Topics::default(), news: Arc::default() }
    }

    /// After a commit that may concern anybody.
    pub(crate) fn ring(&self) {
        self.ring_here();
        self.news.notify_one();
    }

    /// After a commit that may have made a run due.
    pub(crate) fn ring_for_work(&self) {
        count(&self.work);
        self.news.notify_one();
    }

    /// After a commit about one run that makes none due.
    pub(crate) fn ring_for(&self, run: RunId, status: &Status) {
        self.tell(run, News::Any);
        if status.rests() {
            self.tell(run, News::Rest);
        }
        self.news.notify_one();
    }

    /// After a commit that has added to a run's log.
    pub(crate) fn ring_for_log(&self, run: RunId) {
        self.tell(run, News::Any);
        self.news.notify_one();
    }

    fn tell(&self, run: RunId, news: News) {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = topics.get(&(run, news)) {
            count(sender);
        }
    }

    /// Somebody in this process follows the run's log.
    pub(crate) fn is_followed(&self, run: RunId) -> bool {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(run, News::Any))
    }

    fn ring_here(&self) {
        count(&self.everything);
    }

    /// For whoever looks for runs that are due.
    pub(crate) fn listen_for_work(&self) -> Doorbell {
        Doorbell { everything: self.everything.subscribe(), own: self.work.subscribe(), _place: None }
    }

    /// For whoever waits for one run.
    pub(crate) fn listen_to(&self, run: RunId, news: News) -> Doorbell {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let own = topics.entry((run, news)).or_insert_with(|| watch::Sender::new(0)).subscribe();
        let place = Place { topics: self.topics.clone(), topic: (run, news) };
        Doorbell { everything: self.everything.subscribe(), own, _place: Some(place) }
    }
}

fn count(sender: &watch::Sender<u64>) {
    sender.send_modify(|count| *count = count.wrapping_add(1));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a look would be worth it, without waiting for the answer.
    fn hears(bell: &mut Doorbell) -> bool {
        let heard = bell.everything.has_changed().unwrap() || bell.own.has_changed().unwrap();
        bell.everything.mark_unchanged();
        bell.own.mark_unchanged();
        heard
    }

    #[test]
    fn everybody_hears_what_concerns_them_and_nothing_else() {
        let bell = Bell::new();
        let (one, other) = (RunId::from_parts(1, &[1; 10]), RunId::from_parts(1, &[2; 10]));
        let (mut work, mut any, mut rest) =
            (bell.listen_for_work(), bell.listen_to(one, News::Any), bell.listen_to(one, News::Rest));
        bell.ring_for(other, &Status::Succeeded);
        bell.ring_for(one, &Status::Planning);
        assert!(hears(&mut any) && !hears(&mut any));
        assert!(!hears(&mut rest) && !hears(&mut work));
        bell.ring_for(one, &Status::Succeeded);
        assert!(hears(&mut any) && hears(&mut rest) && !hears(&mut work));
        bell.ring_for_work();
        assert!(hears(&mut work) && !hears(&mut any) && !hears(&mut rest));
        bell.ring();
        assert!(hears(&mut work) && hears(&mut any) && hears(&mut rest));
        drop((any, rest));
        assert!(bell.topics.lock().unwrap().is_empty(), "nobody listens to it any more");
    }
}
