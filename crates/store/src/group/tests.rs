use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;
use crate::db::{Db, Tx, params};

struct Place {
    db: Db,
    folder: tempfile::TempDir,
}

impl Place {
    /// With a table of notes. Each may refer to another one, which must be there when it is committed.
    async fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&folder.path().join("notes.db")).await.unwrap();
        let place = Place { db, folder };
        let mut tx = place.db.begin().await.unwrap();
        let sql = "CREATE TABLE notes (word TEXT PRIMARY KEY,
            answers TEXT REFERENCES notes (word) DEFERRABLE INITIALLY DEFERRED)";
        tx.execute(sql, params![]).await.unwrap();
        tx.commit().await.unwrap();
        place
    }

    fn writer(&self) -> &Writer {
        let Db::Sqlite { writer, .. } = &self.db else { unreachable!() };
        writer
    }

    fn river(&self) -> &sqlx::SqlitePool {
        let Db::Sqlite { river, .. } = &self.db else { unreachable!() };
        river
    }

    async fn notes(&self) -> Vec<String> {
        let rows = self.db.read_all("SELECT word FROM notes ORDER BY word", params![]).await.unwrap();
        rows.iter().map(|row| row.text("word").unwrap()).collect()
    }

    async fn begin(&self) -> Tx {
        self.db.begin().await.unwrap()
    }

    /// Two transactions of one group: the first has ended and waits for the commit, the second has its turn.
    async fn two(&self) -> (tokio::task::JoinHandle<Result<(), StoreError>>, Tx) {
        let mut first = self.begin().await;
        note(&mut first, "first", None).await.unwrap();
        let db = self.db.clone();
        let second = tokio::spawn(async move { db.begin().await });
        tokio::task::yield_now().await;
        let first = tokio::spawn(first.commit());
        let second = second.await.unwrap().unwrap();
        let Tx::Sqlite(turn) = &second else { unreachable!() };
        assert_eq!(turn.begun, Begun::AtSavepoint, "they share a commit");
        (first, second)
    }
}

async fn note(tx: &mut Tx, word: &str, answers: Option<&str>) -> Result<u64, StoreError> {
    tx.execute("INSERT INTO notes (word, answers) VALUES ($1, $2)", params![word, answers]).await
}

#[tokio::test]
async fn a_transaction_that_is_dropped_leaves_nothing() {
    let place = Place::new().await;
    let mut dropped = place.begin().await;
    note(&mut dropped, "dropped", None).await.unwrap();
    drop(dropped);
    let mut kept = place.begin().await;
    note(&mut kept, "kept", None).await.unwrap();
    kept.commit().await.unwrap();
    assert_eq!(place.notes().await, ["kept"]);
}

#[tokio::test]
async fn of_a_group_only_the_one_that_is_dropped_is_taken_back() {
    let place = Place::new().await;
    let (first, mut second) = place.two().await;
    note(&mut second, "second", None).await.unwrap();
    drop(second);
    first.await.unwrap().unwrap();
    assert_eq!(place.notes().await, ["first"]);
}

#[tokio::test]
async fn a_statement_that_fails_does_not_end_its_transaction() {
    let place = Place::new().await;
    let mut tx = place.begin().await;
    note(&mut tx, "once", None).await.unwrap();
    note(&mut tx, "once", None).await.unwrap_err();
    note(&mut tx, "after", None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.notes().await, ["after", "once"]);
}

#[tokio::test]
async fn whoever_asked_for_a_commit_may_go_away() {
    let place = Place::new().await;
    let mut tx = place.begin().await;
    note(&mut tx, "kept", None).await.unwrap();
    let gone = tokio::time::timeout(Duration::ZERO, tx.commit()).await;
    // Behind the commit, if that had not ended yet.
    place.begin().await.commit().await.unwrap();
    assert_eq!(place.notes().await, ["kept"], "{gone:?}");
}

#[tokio::test]
async fn a_commit_that_fails_is_told_to_all_who_were_in_it() {
    let place = Place::new().await;
    let (first, mut second) = place.two().await;
    note(&mut second, "second", Some("nobody")).await.unwrap();
    let (first, second) = tokio::join!(first, second.commit());
    for end in [first.unwrap(), second] {
        assert!(end.unwrap_err().to_string().contains("FOREIGN KEY"));
    }
    let mut next = place.begin().await;
    note(&mut next, "next", None).await.unwrap();
    next.commit().await.unwrap();
    assert_eq!(place.notes().await, ["next"]);
}

/// As SQLite does when the disk is full: nothing may be written as if it were a transaction of its own.
#[tokio::test]
async fn a_transaction_that_sqlite_has_rolled_back_takes_nothing_more() {
    let place = Place::new().await;
    let (first, mut second) = place.two().await;
    second.execute("ROLLBACK", params![]).await.unwrap();
    note(&mut second, "second", None).await.unwrap_err();
    second.commit().await.unwrap_err();
    first.await.unwrap().unwrap_err();
    let mut alone = place.begin().await;
    alone.execute("ROLLBACK", params![]).await.unwrap();
    alone.commit().await.unwrap_err();
    let mut next = place.begin().await;
    note(&mut next, "next", None).await.unwrap();
    next.commit().await.unwrap();
    assert_eq!(place.notes().await, ["next"]);
}

/// On one thread: were the writer to wait inside of SQLite, nobody could end what it waits for.
#[tokio::test]
async fn a_writer_waits_for_a_stranger_without_a_thread() {
    let place = Place::new().await;
    let mut stranger = Connection::to_write(&place.folder.path().join("notes.db")).unwrap();
    stranger.tell("BEGIN IMMEDIATE").unwrap();
    let ended = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        stranger.tell("COMMIT").unwrap();
    });
    let mut tx = place.begin().await;
    assert!(ended.is_finished());
    note(&mut tx, "kept", None).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn river_has_a_turn_while_it_uses_its_connection() {
    let place = Place::new().await;
    // One that has ended and is not on disk yet would make River wait for a lock that nobody gives back.
    let (first, second) = place.two().await;
    let river = place.river().clone();
    let borrowed = tokio::spawn(async move { river.acquire().await });
    tokio::task::yield_now().await;
    second.commit().await.unwrap();
    let mut river = borrowed.await.unwrap().unwrap();
    first.await.unwrap().unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *river).await.unwrap();
    sqlx::query("INSERT INTO notes (word) VALUES ('river')").execute(&mut *river).await.unwrap();
    let writer = place.writer().clone();
    let waiting = tokio::spawn(async move { writer.begin().await.map(drop) });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    assert!(place.writer().group.try_lock().is_err(), "it is River's turn");
    sqlx::query("COMMIT").execute(&mut *river).await.unwrap();
    drop(river);
    waiting.await.unwrap().unwrap();
    assert_eq!(place.notes().await, ["first", "river"]);
}

#[tokio::test]
async fn a_turn_that_river_does_not_give_back_ends_by_itself() {
    let place = Place::new().await;
    let kept = place.writer().lend().await;
    place.begin().await.commit().await.unwrap();
    drop(kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn river_and_writers_at_once_disturb_nobody() {
    let place = Arc::new(Place::new().await);
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|number| {
            let (place, over) = (place.clone(), over.clone());
            tokio::spawn(async move {
                let mut written = 0;
                while !over.load(Ordering::Relaxed) {
                    let mut tx = place.begin().await;
                    note(&mut tx, &format!("{number} {written}"), None).await.unwrap();
                    tx.commit().await.unwrap();
                    written += 1;
                }
                written
            })
        })
        .collect();
    let (mut by_river, begun) = (0, Instant::now());
    while begun.elapsed() < Duration::from_secs(3) {
        let mut tx = place.river().begin_with("BEGIN IMMEDIATE").await.unwrap();
        let sql = "INSERT INTO notes (word) VALUES ($1)";
        sqlx::query(sql).bind(format!("river {by_river}")).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        by_river += 1;
        let sql = "UPDATE notes SET answers = word WHERE word = $1";
        sqlx::query(sql).bind(format!("river {}", by_river - 1)).execute(place.river()).await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let mut all = by_river;
    for writer in writers {
        let written = writer.await.unwrap();
        assert!(written > 0);
        all += written;
    }
    assert_eq!(place.notes().await.len(), all);
    // Without turns it finds a gap once in a while, if at all.
    assert!(by_river > 20, "River had {by_river} turns beside {} of others", all - by_river);
}
