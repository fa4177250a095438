//! A client that sends a call again after a failure, as Cato's provider does after any 5xx.

use landform_sim::{Options, Running};
use serde_json::{Value, json};

use crate::{LOOK, Scene, add_site, address, data};

/// The gateway's own word, if it is one.
fn mark(answer: &(u16, Value, reqwest::header::HeaderMap)) -> Option<&str> {
    answer.2.get("x-landform-gateway").map(|mark| mark.to_str().unwrap())
}

fn site_id(body: &Value) -> String {
    body["data"]["site"]["made"]["siteId"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

fn renaming(site: &str) -> String {
    format!(r#"updateSiteGeneralDetails(siteId: "{site}", input: {{name: "two"}}) {{ siteId }}"#)
}

fn rename(site: &str) -> String {
    format!(r#"mutation {{ site(accountId: "1") {{ {} }} }}"#, renaming(site))
}

#[tokio::test]
async fn a_create_that_may_have_been_carried_out_is_not_sent_again() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({"repeatable": ["update*", "remove*"]}));
    let seat = scene.seat("acme", &vendor);
    scene.order(json!({"kind": "unavailable_after"})).await;
    let first = scene.ask(address(&seat), &add_site("one")).await;
    assert_eq!((first.0, mark(&first)), (503, None), "the vendor's own word: {}", first.1);
    assert_eq!(first.1, json!({"message": "service unavailable"}));
    for _ in 0..2 {
        let again = scene.ask(address(&seat), &add_site("one")).await;
        assert_eq!((again.0, mark(&again)), (424, Some("again")), "{}", again.1);
        let said = again.1["errors"][0]["message"].as_str().unwrap();
        assert!(said.contains("the same call was sent before") && said.contains("not known"), "{said}");
    }
    assert_eq!(scene.sites().await, 1);
    let tally = seat.tally();
    assert_eq!((tally.unclear, tally.again, tally.doubts(), tally.sent["addIpsecIkeV2Site"]), (1, 2, 3, 1));
    let total = scene.gateway.totals().remove(0);
    let words: Vec<_> = total.outcomes.iter().map(|(outcome, count)| (outcome.word(), *count)).collect();
    assert_eq!(words, [("unclear", 1), ("again", 2)]);
    // It is this call that is in doubt, and no other.
    assert_eq!(scene.ask(address(&seat), &add_site("two")).await.0, 200);
    assert_eq!(scene.ask(address(&seat), LOOK).await.0, 200);
    assert_eq!(scene.sites().await, 2);
}

/// The next attempt, or run: somebody has looked, and said that it is not there.
#[tokio::test]
async fn who_comes_after_may_send_it() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({}));
    let seat = scene.seat("acme", &vendor);
    scene.order(json!({"kind": "unavailable"})).await;
    assert_eq!(scene.ask(address(&seat), &add_site("one")).await.0, 503);
    assert_eq!(scene.ask(address(&seat), &add_site("one")).await.0, 424, "nobody knows that it was not done");
    let beside = scene.seat("acme", &vendor);
    assert_eq!(scene.ask(address(&beside), &add_site("one")).await.0, 200);
    let place = address(&seat).to_owned();
    drop(seat);
    let next = scene.seat("acme", &vendor);
    assert_eq!(address(&next), place);
    assert_eq!(scene.ask(address(&next), &add_site("one")).await.0, 200);
    assert_eq!(scene.sites().await, 2);
}

#[tokio::test]
async fn what_is_known_to_be_repeatable_is_sent_as_often_as_it_is_asked_for() {
    let scene = Scene::set(json!({})).await;
    let knows = scene.seat("acme", &data(json!({}), json!({"repeatable": ["update*", "remove*"]})));
    let knows_nothing = scene.seat("globex", &data(json!({}), json!({})));
    let site = site_id(&scene.ask(address(&knows), &add_site("one")).await.1);
    for (seat, second) in [(&knows, 200), (&knows_nothing, 424)] {
        scene.order(json!({"kind": "unavailable_after"})).await;
        assert_eq!(scene.ask(address(seat), &rename(&site)).await.0, 503);
        let again = scene.ask(address(seat), &rename(&site)).await;
        assert_eq!(again.0, second, "{}", again.1);
        // A question changes nothing, whoever asks it.
        scene.order(json!({"kind": "unavailable_after"})).await;
        assert_eq!(scene.ask(address(seat), LOOK).await.0, 503);
        assert_eq!(scene.ask(address(seat), LOOK).await.0, 200);
    }
    assert_eq!((knows.tally().doubts(), knows_nothing.tally().doubts()), (0, 2));
    // With one beside it that is not, it is not either.
    let both = add_site("three").replacen("{ made:", &format!("{{ {} made:", renaming(&site)), 1);
    scene.order(json!({"kind": "unavailable"})).await;
    assert_eq!(scene.ask(address(&knows), &both).await.0, 503);
    assert_eq!(scene.ask(address(&knows), &both).await.0, 424);
}

/// Silence, an answer that breaks off, and a caller that went away leave the same question.
#[tokio::test]
async fn every_way_not_to_know_is_remembered() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({"answer_seconds": 1}));
    let seat = scene.seat("acme", &vendor);
    for (made, (kind, first)) in [("hang_after", 424), ("broken_body", 200)].into_iter().enumerate() {
        scene.order(json!({ "kind": kind })).await;
        assert_eq!(scene.ask(address(&seat), &add_site(kind)).await.0, first, "{kind}");
        let again = scene.ask(address(&seat), &add_site(kind)).await;
        assert_eq!((again.0, mark(&again)), (424, Some("again")), "{kind}");
        assert_eq!(scene.sites().await, made + 1, "{kind}");
    }
    let patient = scene.seat("acme", &data(json!({}), json!({})));
    scene.order(json!({"kind": "hang_after"})).await;
    let away = add_site("away");
    let sent = async || scene.sites().await == 3;
    tokio::select! {
        answer = scene.ask(address(&patient), &away) => panic!("the vendor hangs: {answer:?}"),
        () = async { while !sent().await { tokio::task::yield_now().await } } => {}
    }
    // However soon it comes.
    let again = scene.ask(address(&patient), &away).await;
    assert_eq!((again.0, mark(&again)), (424, Some("again")), "{}", again.1);
    assert_eq!(scene.sites().await, 3);
}

/// A client with less patience than the gateway may be back before anybody has noticed that it went.
#[tokio::test]
async fn the_same_call_beside_the_first_waits_for_what_becomes_of_it() {
    let scene = Scene::set(json!({})).await;
    let seat = scene.seat("acme", &data(json!({}), json!({"answer_seconds": 1})));
    scene.order(json!({"kind": "hang_after"})).await;
    let site = add_site("one");
    let answers = tokio::join!(scene.ask(address(&seat), &site), scene.ask(address(&seat), &site));
    assert_eq!((answers.0.0, answers.1.0), (424, 424));
    let mut marks = [mark(&answers.0), mark(&answers.1)];
    marks.sort_unstable();
    assert_eq!(marks, [Some("again"), Some("silence")]);
    assert_eq!(scene.sites().await, 1);
    // Both are carried out if nothing goes wrong: to want the same twice is no mistake.
    let site = add_site("two");
    let answers = tokio::join!(scene.ask(address(&seat), &site), scene.ask(address(&seat), &site));
    assert_eq!((answers.0.0, answers.1.0), (200, 200));
    assert_eq!(scene.sites().await, 3);
}

#[tokio::test]
async fn what_was_certainly_not_carried_out_may_be_sent_again() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({"rate_limited": {"statuses": [429, 503]}}));
    let seat = scene.seat("acme", &vendor);
    // This vendor's 503 is its rate limit, and its error in a whole answer is a refusal.
    scene.order(json!({"kind": "unavailable"})).await;
    assert_eq!(scene.ask(address(&seat), &add_site("one")).await.0, 200);
    scene.order(json!({"kind": "fail_later"})).await;
    let refused = scene.ask(address(&seat), &add_site("two")).await;
    assert!(refused.0 == 200 && refused.1["errors"].is_array(), "{}", refused.1);
    assert_eq!(scene.ask(address(&seat), &add_site("two")).await.0, 200);
    assert_eq!(scene.sites().await, 2);
    let nowhere = scene.seat_at("http://127.0.0.1:1/".to_owned(), "acme", &vendor);
    for _ in 0..2 {
        let unreachable = scene.ask(address(&nowhere), &add_site("one")).await;
        assert_eq!((unreachable.0, mark(&unreachable)), (502, Some("unreachable")));
    }
    assert_eq!((seat.tally().doubts(), nowhere.tally().doubts()), (0, 0));
}

/// The same at a vendor with paths: what a method means is known, what a POST means is data.
#[tokio::test]
async fn a_post_is_not_sent_again_and_a_put_is() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let director = Running::start(landform_sim::Vendor::Versa, listener, Options::default()).await.unwrap();
    let scene = Scene::set(json!({})).await;
    let versa = landform_gateway::vendor::built_in().into_iter().find(|vendor| vendor.vendor == "versa").unwrap();
    let seat = scene.seat_at(format!("http://{}", director.address()), "acme", &versa);
    let control = |path: &str| format!("http://{}/_sim/{path}", director.address());
    let call = async |method: &str, path: &str, body: Value| {
        let request = scene.http.request(method.parse().unwrap(), format!("{}{path}", address(&seat)));
        request.basic_auth("a", Some("b")).json(&body).send().await.unwrap().status().as_u16()
    };
    let group = json!({"device-group": {"name": "g", "dg:organization": "o", "dg:poststaging-template": ""}});
    let (collection, place) = ("/nextgen/deviceGroup", "/nextgen/deviceGroup/g");
    for (method, path, body, second) in
        [("POST", collection, &group, 424), ("PUT", place, &group, 200), ("DELETE", place, &Value::Null, 404)]
    {
        let fault = json!({"kind": "unavailable_after"});
        assert_eq!(scene.http.post(control("faults")).json(&fault).send().await.unwrap().status(), 204);
        assert_eq!(call(method, path, body.clone()).await, 503, "{method}");
        assert_eq!(call(method, path, body.clone()).await, second, "{method}");
    }
    let log: Value = scene.http.get(control("calls")).send().await.unwrap().json().await.unwrap();
    assert_eq!(log["totals"]["device_group.create"], json!({"unavailable": 1}), "{log}");
}
