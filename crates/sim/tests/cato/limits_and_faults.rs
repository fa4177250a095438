use std::time::Duration;

use landform_sim::{Limits, Vendor, Window};
use serde_json::{Value, json};

use crate::{ADD_SITE, Cato};

const LOOK: &str = r#"{ entityLookup(accountID: "1", type: site) { total } }"#;

#[tokio::test]
async fn over_the_limit_both_signals_appear_and_nothing_is_done() {
    let cato = Cato::start(Limits::none().operation("addIpsecIkeV2Site", &[Window::per_minutes(2, 1)])).await;
    let mut bodies = Vec::new();
    let mut refused = 0;
    for number in 0..8 {
        let answer = cato.ask(ADD_SITE, json!({"name": format!("s{number}")})).await.expect("an answer");
        let (status, retry_after) = (answer.status(), answer.headers().get("retry-after").cloned());
        let body: Value = answer.json().await.expect("JSON");
        if status == 429 {
            refused += 1;
            let seconds: u64 = retry_after.expect("a Retry-After").to_str().expect("text").parse().expect("a number");
            assert!((1..=60).contains(&seconds));
        } else if body.get("errors").is_some() {
            assert_eq!(body["errors"][0]["message"], "rate limit for operation: addIpsecIkeV2Site");
            bodies.push(body);
        }
    }
    assert_eq!((refused, bodies.len()), (2, 4));
    assert_eq!(cato.sites().await, 2);
    assert!(cato.answer(LOOK, Value::Null).await.get("errors").is_none(), "other operations have their own budget");
    let calls = cato.control("calls").await;
    assert_eq!(calls["totals"]["addIpsecIkeV2Site"], json!({"answered": 2, "rate_limited": 6}));
}

#[tokio::test]
async fn the_published_limits_bind_the_lookup() {
    let cato = Cato::start(Vendor::Cato.limits()).await;
    for _ in 0..30 {
        assert!(cato.answer(LOOK, Value::Null).await.get("errors").is_none());
    }
    let over = cato.answer(LOOK, Value::Null).await;
    assert_eq!(over["errors"][0]["message"], "rate limit for operation: entityLookup");
}

#[tokio::test]
async fn a_time_out_after_creating_has_created() {
    let cato = Cato::start(Limits::none()).await;
    cato.order(json!({"operation": "addIpsecIkeV2Site", "kind": "hang_after"})).await;
    let silence = tokio::time::timeout(Duration::from_millis(300), cato.add_site("one")).await;
    assert!(silence.is_err(), "no answer ever");
    assert_eq!(cato.sites().await, 1);
    cato.add_site("one").await;
    assert_eq!(cato.sites().await, 2, "asked again, it makes a second one");
}

#[tokio::test]
async fn every_other_fault_does_what_its_name_says() {
    let cato = Cato::start(Limits::none()).await;
    for (kind, status, sites) in
        [("unavailable", 503, 0), ("unavailable_after", 503, 1), ("too_many_requests", 429, 1), ("rate_limit", 200, 1)]
    {
        cato.order(json!({"kind": kind})).await;
        let answer = cato.ask(ADD_SITE, json!({"name": kind})).await.expect("an answer");
        assert_eq!((answer.status().as_u16(), cato.sites().await), (status, sites), "{kind}");
    }
    cato.order(json!({"kind": "broken_body", "account": "1"})).await;
    let broken = cato.ask(ADD_SITE, json!({"name": "broken"})).await.expect("an answer");
    assert!(broken.json::<Value>().await.is_err());
    assert_eq!(cato.sites().await, 2);
    cato.order(json!({"kind": "hang", "times": 3})).await;
    assert!(tokio::time::timeout(Duration::from_millis(200), cato.add_site("hung")).await.is_err());
    assert_eq!(cato.control("faults").await["faults"][0]["times"], 2);
    let reset = cato.http.post(format!("{}/_sim/reset", cato.root)).send().await.expect("an answer");
    assert_eq!(reset.status(), 204);
    assert_eq!(cato.control("ledger").await, json!({"accounts": {}}));
    assert_eq!(cato.control("calls").await["count"], 0);
    assert_eq!(cato.control("faults").await, json!({"faults": []}));
}

#[tokio::test]
async fn wrong_requests_are_refused_with_the_reason() {
    let cato = Cato::start(Limits::none()).await;
    for (query, reason) in [
        ("{ nothing }", "nothing"),
        ("{ entityLookup(accountID: \"1\", type: planet) { total } }", "planet"),
        ("query {", "expected"),
        ("mutation { site(accountId: \"1\") { addIpsecIkeV2Site(input: {}) { siteId } } }", "name"),
    ] {
        let answer = cato.ask(query, Value::Null).await.expect("an answer");
        assert_eq!(answer.status(), 400, "{query}");
        let body: Value = answer.json().await.expect("JSON");
        let message = body["errors"][0]["message"].as_str().expect("a message").to_lowercase();
        assert!(message.contains(reason), "{message}");
    }
    let deep = format!("{{ {} }}", "site(accountId: \"1\") { ".repeat(5_000));
    assert_eq!(cato.ask(&deep, Value::Null).await.expect("an answer").status(), 400);
    let without_key = cato.http.post(cato.endpoint()).json(&json!({"query": LOOK})).send().await.expect("an answer");
    assert_eq!(without_key.status(), 403);
    assert_eq!(cato.sites().await, 0);
}
