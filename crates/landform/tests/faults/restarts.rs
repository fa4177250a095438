//! New versions are rolled out while everybody goes on working.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use landform_testkit::landform::Landform;
use serde_json::Value;

use crate::house::{House, Memory};

const CLIENTS: usize = 3;
const ROUNDS: usize = 2;

/// Writes deployments until it is told to stop, to whichever server answers, and returns their names with their runs. What
/// got no answer is sent again with the same key.
async fn client(
    number: usize,
    house: &House,
    servers: &Mutex<[String; 2]>,
    stop: &AtomicBool,
) -> Vec<(String, String)> {
    let http = landform_testkit::http_client(Duration::from_secs(30));
    let token = std::fs::read_to_string(house.setup.data.join("admin.token")).unwrap();
    let mut written = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let name = format!("site-{number}-{}", written.len());
        let body = house.body("native", &name, 1, 100);
        let mut tries = number;
        let run = loop {
            let base = servers.lock().unwrap()[tries % 2].clone();
            tries += 1;
            let request = http.put(format!("{base}/v1/tenants/acme/deployments/{name}")).bearer_auth(token.trim());
            let request = request.header("idempotency-key", &name).json(&body);
            if let Ok(answer) = request.send().await
                && answer.status().is_success()
                && let Ok(accepted) = answer.json::<Value>().await
            {
                break accepted["run"]["id"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        written.push((name, run));
    }
    written
}

#[tokio::test]
async fn a_rolling_restart_under_load_loses_nothing() {
    let mut house = House::build(Memory::Postgres).await;
    house.setup.workers = 4;
    let second = house.another_setup();
    let mut running = [house.landform.take().unwrap(), Landform::start(&second).await.unwrap()];
    let servers = Arc::new(Mutex::new([running[0].base().to_owned(), running[1].base().to_owned()]));
    let stop = Arc::new(AtomicBool::new(false));
    let rolling = async {
        for _ in 0..ROUNDS {
            for (at, setup) in [&house.setup, &second].into_iter().enumerate() {
                let next = {
                    let [first, second] = running;
                    let (old, other) = if at == 0 { (first, second) } else { (second, first) };
                    old.stop().await.unwrap();
                    let new = Landform::start(setup).await.unwrap();
                    servers.lock().unwrap()[at] = new.base().to_owned();
                    if at == 0 { [new, other] } else { [other, new] }
                };
                running = next;
            }
        }
        stop.store(true, Ordering::SeqCst);
        running
    };
    let clients = futures::future::join_all((0..CLIENTS).map(|number| client(number, &house, &servers, &stop)));
    let ([first, _second], written) = tokio::join!(rolling, clients);
    house.landform = Some(first);
    let written: Vec<(String, String)> = written.into_iter().flatten().collect();
    assert!(written.len() > 2 * CLIENTS, "there was load: {}", written.len());
    for (name, run) in &written {
        house.until(run, &["succeeded", "unchanged"]).await;
        house.agree(name).await;
    }
}
