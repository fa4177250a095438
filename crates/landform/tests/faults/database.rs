//! The database goes away, or swallows an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landform_testkit::postgres;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::house::{House, Memory, kept, wait_for};

async fn the_database_restarts(engine: &str) {
    let mut house = House::build(Memory::Postgres).await;
    let run = house.put(engine, "site", 1000).await;
    house.until_touched(&run).await;
    let mut database = house.database.take().unwrap();
    let restarted = tokio::task::spawn_blocking(move || database.crash_and_restart().map(|()| database));
    house.database = Some(restarted.await.unwrap().unwrap());
    house.settle(&run, "site").await;
}

#[tokio::test]
async fn an_apply_outlives_its_database() {
    the_database_restarts("native").await;
}

#[tokio::test]
async fn an_apply_of_the_cli_outlives_its_database() {
    the_database_restarts("cli").await;
}

/// The database is away, the provider finishes what it was doing, the worker dies, and both come back: the result was on
/// the worker's disk, so nobody is asked.
#[tokio::test]
async fn what_was_done_while_the_database_was_away_outlives_the_worker() {
    let mut house = House::build(Memory::Postgres).await;
    // Long enough that the database is gone before the call has ended, also on a busy machine.
    let run = house.put("native", "site", 5000).await;
    house.until_touched(&run).await;
    let mut database = house.database.take().unwrap();
    database.crash();
    let away = house.landform().request(reqwest::Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(away.status(), 503, "{:?}", away.text().await);
    let alive = house.landform().request(reqwest::Method::GET, "/healthz").send().await.unwrap();
    assert_eq!(alive.status(), 200);
    let spool = house.setup.data.join("worker/spool");
    wait_for("the result to be on disk", async || (!kept(&spool).is_empty()).then_some(())).await;
    house.landform.take().unwrap().kill().unwrap();
    let found = kept(&spool).pop().unwrap();
    assert!(!std::fs::read_to_string(found).unwrap().contains("ledger_object"), "it is sealed");
    let restarted = tokio::task::spawn_blocking(move || database.restart().map(|()| database));
    house.database = Some(restarted.await.unwrap().unwrap());
    house.restart().await;
    house.until(&run, &["succeeded", "unchanged"]).await;
    house.agree("site").await;
    let back = house.landform().request(reqwest::Method::GET, "/readyz").send().await.unwrap();
    assert_eq!(back.status(), 200);
    assert!(kept(&spool).is_empty(), "it was brought once");
}

/// Passes everything on, until it is told to swallow the answer to the next COMMIT.
async fn proxy(to: String, swallow: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&to).await.unwrap();
            tokio::spawn(between(client, server, swallow.clone()));
        }
    });
    port
}

async fn between(mut client: TcpStream, mut server: TcpStream, swallow: Arc<AtomicBool>) {
    let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut swallowing = false;
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(length @ 1..) = read else { return };
                let bytes = &from_client[..length];
                let commits = bytes.windows(6).any(|word| word == b"COMMIT");
                swallowing |= commits && swallow.swap(false, Ordering::SeqCst);
                if server.write_all(bytes).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut from_server) => {
                let Ok(length @ 1..) = read else { return };
                // The commit is done, and nobody will hear of it: the connection breaks.
                if swallowing || client.write_all(&from_server[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_one_run() {
    let database = postgres::Server::start().unwrap();
    let swallow = Arc::new(AtomicBool::new(false));
    let url = database.url();
    let address = url.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
    let port = proxy(address.clone(), swallow.clone()).await;
    let through = url.replace(&address, &format!("127.0.0.1:{port}"));
    let house = House::build_on(Some(database), Some(through), &[]).await;
    let path = "/v1/tenants/acme/deployments/site";
    let ask = async || {
        let request = house.landform().request(reqwest::Method::PUT, path).header("idempotency-key", "one");
        request.json(&house.body("native", "site", 1, 0)).send().await.unwrap()
    };
    swallow.store(true, Ordering::SeqCst);
    // Whatever commits first loses its answer, which may be the worker's next look. Either way a careful client asks
    // until it is told yes.
    let mut answer = ask().await;
    while !answer.status().is_success() {
        assert!(answer.status().is_server_error(), "{}", answer.status());
        answer = ask().await;
    }
    let accepted: serde_json::Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    house.settle(accepted["run"]["id"].as_str().unwrap(), "site").await;
    assert!(!swallow.load(Ordering::SeqCst), "an answer was swallowed");
    let runs = house.landform().call("GET", "/v1/runs", None).await.unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}
