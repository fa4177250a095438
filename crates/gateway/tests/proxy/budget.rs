use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use crate::{LOOK, Scene, add_site, address, data};

#[tokio::test]
async fn no_window_is_exceeded_by_many_tenants_at_once() {
    let limits = json!({"entityLookup": [[4, 1], [10, 3]], "*": [[120, 60]]});
    let scene = Scene::set(limits.clone()).await;
    let vendor = data(limits, json!({}));
    let seats: Vec<_> = (0..4).map(|tenant| scene.seat(&tenant.to_string(), &vendor)).collect();
    let calls = seats.iter().flat_map(|seat| (0..6).map(|_| scene.ask(address(seat), LOOK)));
    for (status, body, _) in join_all(calls).await {
        assert!(status == 200 && body.get("errors").is_none(), "{status} {body}");
    }
    // The vendor counts exactly, and would have said so.
    assert_eq!(scene.control("calls").await["totals"]["entityLookup"], json!({"answered": 24}));
    assert_eq!(seats.iter().map(|seat| seat.tally().sent["entityLookup"]).sum::<u64>(), 24);
}

#[tokio::test]
async fn what_the_vendor_refuses_for_its_rate_is_sent_again_and_done_once() {
    let scene = Scene::set(json!({"addIpsecIkeV2Site": [[2, 2]]})).await;
    // The gateway knows of no limit and has to learn it; the vendor tells it in two ways.
    let vendor = data(json!({}), json!({}));
    let seat = scene.seat("acme", &vendor);
    let sites: Vec<String> = (0..5).map(|number| add_site(&format!("s{number}"))).collect();
    for (status, body, _) in join_all(sites.iter().map(|site| scene.ask(address(&seat), site))).await {
        assert!(status == 200 && body["data"]["site"]["made"]["siteId"].is_string(), "{status} {body}");
    }
    assert_eq!(scene.sites().await, 5);
    assert!(seat.tally().rate_limited > 0);
}

#[tokio::test]
async fn who_cannot_be_served_in_time_is_told_when_to_come_back() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({"entityLookup": [[1, 60]]}), json!({"hold_seconds": 1}));
    let seat = scene.seat("acme", &vendor);
    assert_eq!(scene.ask(address(&seat), LOOK).await.0, 200);
    let (status, body, headers) = scene.ask(address(&seat), LOOK).await;
    let wait: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(status == 429 && (30..=61).contains(&wait), "{status} {wait} {body}");
    assert_eq!(headers["x-landform-gateway"], "later");
    assert_eq!(scene.control("calls").await["count"], 1);
    // Another operation, and another account, are not concerned.
    assert_eq!(scene.ask(address(&seat), &add_site("a")).await.0, 200);
}

#[tokio::test]
async fn a_run_is_let_in_when_the_budget_can_carry_it_beside_those_that_are_in() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({"entityLookup": [[5, 60]]}), json!({"hold_seconds": 1}));
    let (one, two) = (scene.seat("acme", &vendor), scene.seat("globex", &vendor));
    let looks =
        |calls| std::collections::BTreeMap::from([("entityLookup".to_owned(), calls), ("other".to_owned(), 99)]);
    one.admit("one", &looks(4)).unwrap();
    assert!(two.admit("two", &looks(2)).unwrap_err().as_secs() >= 59, "four are promised, and not sent yet");
    let three = scene.seat("initech", &vendor);
    assert!(three.admit("three", &looks(1)).is_err(), "there is room for one, but two came first");
    two.admit("two", &looks(1)).unwrap();
    drop(one);
    two.admit("two", &looks(4)).unwrap();
    for _ in 0..3 {
        assert_eq!(scene.ask(address(&two), LOOK).await.0, 200);
    }
    assert!(three.admit("three", &looks(2)).is_err(), "three are sent and one is promised");
    drop(two);
    three.admit("three", &looks(2)).unwrap();
}

#[tokio::test]
async fn the_next_owner_of_an_account_knows_what_the_last_one_has_sent() {
    let mut scene = Scene::set(json!({})).await;
    let vendor = data(json!({"entityLookup": [[2, 60]]}), json!({"hold_seconds": 1}));
    let seat = scene.seat("acme", &vendor);
    let account = seat.account().to_owned();
    assert_eq!(scene.gateway.past(&account), None);
    assert_eq!(scene.ask(address(&seat), LOOK).await.0, 200);
    let past = scene.gateway.past(&account).expect("a call was sent").to_json();
    assert_eq!(scene.gateway.sent(&account), 1);
    let past = landform_gateway::Handover::from_json(&past).unwrap();
    for (known, allowed) in [(Some(Duration::ZERO), 1), (Some(Duration::from_secs(61)), 2), (None, 0)] {
        scene.gateway = landform_gateway::Gateway::start(None).await.unwrap();
        match known {
            Some(ago) => scene.gateway.inherit(&account, &past, ago),
            None => scene.gateway.inherit_unknown(&account),
        }
        let seat = scene.seat("acme", &vendor);
        for call in 0..3 {
            let status = scene.ask(address(&seat), LOOK).await.0;
            assert_eq!(status, if call < allowed { 200 } else { 429 }, "{known:?} {call}");
        }
    }
}

#[tokio::test]
async fn who_does_not_own_an_account_any_more_sends_nothing() {
    let scene = Scene::set(json!({})).await;
    let seat = scene.seat("acme", &data(json!({}), json!({})));
    assert!(scene.gateway.is_used(seat.account()));
    scene.gateway.owns(seat.account(), Instant::now() + Duration::from_secs(60));
    assert_eq!(scene.ask(address(&seat), LOOK).await.0, 200);
    scene.gateway.owns(seat.account(), Instant::now());
    let (status, _, headers) = scene.ask(address(&seat), LOOK).await;
    assert_eq!((status, headers["x-landform-gateway"].to_str().unwrap()), (403, "elsewhere"));
    assert_eq!(scene.control("calls").await["count"], 1);
}

#[tokio::test]
async fn a_window_outlives_the_process() {
    let mut scene = Scene::set(json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls");
    let vendor = data(json!({"entityLookup": [[1, 60]]}), json!({"hold_seconds": 1}));
    for expected in [200, 429] {
        scene.gateway = landform_gateway::Gateway::start(Some(&file)).await.unwrap();
        let seat = scene.seat("acme", &vendor);
        assert_eq!(scene.ask(address(&seat), LOOK).await.0, expected);
        assert_eq!(scene.ask(address(&seat), &add_site("a")).await.0, 200);
    }
    assert_eq!(scene.control("calls").await["totals"]["entityLookup"], json!({"answered": 1}));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_still_counts() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({"entityLookup": [[1, 60]]}), json!({"hold_seconds": 1}));
    let seat = scene.seat("acme", &vendor);
    scene.order(json!({"kind": "hang"})).await;
    tokio::select! {
        answer = scene.ask(address(&seat), LOOK) => panic!("the vendor hangs: {answer:?}"),
        () = async {
            while scene.control("calls").await["count"] == 0 {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    assert_eq!(scene.ask(address(&seat), LOOK).await.0, 429);
    assert_eq!(scene.control("calls").await["count"], 1);
}

#[tokio::test]
async fn concurrency_is_bounded() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({"concurrency": 1, "answer_seconds": 1}));
    let seat = scene.seat("acme", &vendor);
    scene.order(json!({"kind": "hang"})).await;
    // The second call waits for the end of the first, which is silence.
    let answers = join_all([LOOK, LOOK].map(|query| scene.ask(address(&seat), query))).await;
    assert_eq!(answers.iter().map(|(status, ..)| *status).collect::<Vec<_>>(), [424, 200]);
    let calls = scene.control("calls").await;
    let at = |number: usize| calls["calls"][number]["at_ms"].as_u64().unwrap();
    assert!(at(1) >= at(0) + 990, "{calls}");
}
