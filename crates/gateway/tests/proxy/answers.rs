use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{LOOK, Scene, add_site, address, data};

#[tokio::test]
async fn nobody_calls_without_a_seat() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({}));
    let seat = scene.seat("acme", &vendor);
    let mine = address(&seat).to_owned();
    assert_eq!(scene.ask(&mine, LOOK).await.0, 200);
    let (root, _) = mine.rsplit_once('/').unwrap();
    let guessed = scene.ask(&format!("{root}/{}", "0".repeat(40)), LOOK).await;
    drop(seat);
    let over = scene.ask(&mine, LOOK).await;
    assert_eq!((guessed.0, &guessed.1), (403, &over.1), "a seat that is over is as unknown as one that never was");
    assert_eq!(scene.ask(root, LOOK).await.0, 403);
    assert_eq!(scene.control("calls").await["count"], 1);
}

#[tokio::test]
async fn a_seat_has_the_same_address_again_and_runs_at_once_have_their_own() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({}));
    let (one, two) = (scene.seat("acme", &vendor), scene.seat("acme", &vendor));
    assert_ne!(address(&one), address(&two));
    assert_ne!(address(&one), address(&scene.seat("globex", &vendor)));
    assert_eq!(scene.ask(address(&two), LOOK).await.0, 200);
    assert_eq!((one.tally().sent.len(), two.tally().sent.len()), (0, 1));
    let first = address(&one).to_owned();
    drop(one);
    assert_eq!(address(&scene.seat("acme", &vendor)), first);
}

#[tokio::test]
async fn silence_is_a_definite_error_and_nothing_is_sent_twice() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({"answer_seconds": 1}));
    let seat = scene.seat("acme", &vendor);
    scene.order(json!({"kind": "hang_after"})).await;
    let (status, body, _) = scene.ask(address(&seat), &add_site("one")).await;
    assert!(status == 424 && body["message"].as_str().unwrap().contains("not known"), "{status} {body}");
    assert_eq!((scene.sites().await, seat.tally().silences), (1, 1));
    assert_eq!(scene.control("calls").await["totals"]["addIpsecIkeV2Site"], json!({"hung": 1}));
}

#[tokio::test]
async fn what_the_vendor_says_is_passed_on_as_it_is() {
    let scene = Scene::set(json!({})).await;
    let vendor = data(json!({}), json!({}));
    let seat = scene.seat("acme", &vendor);
    for (kind, status) in [("unavailable", 503), ("unavailable_after", 503), ("fail_later", 200)] {
        scene.order(json!({"kind": kind})).await;
        assert_eq!(scene.ask(address(&seat), &add_site(kind)).await.0, status, "{kind}");
    }
    assert_eq!(scene.sites().await, 1, "what failed was not tried again");
    scene.order(json!({"kind": "broken_body"})).await;
    let (status, body, _) = scene.ask(address(&seat), LOOK).await;
    assert!(status == 200 && body.is_null(), "half of it is half of it");
    drop(TcpListener::bind("127.0.0.1:0").await.unwrap());
    let nowhere = scene.seat_at("http://127.0.0.1:1/".to_owned(), "acme", &vendor);
    let (status, body, _) = scene.ask(address(&nowhere), LOOK).await;
    assert!(status == 502 && !body.to_string().contains("127.0.0.1"), "{status} {body}");
}

/// Says what it was asked, and sends some elsewhere.
async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: String) -> (StatusCode, HeaderMap, String) {
    let mut answer = HeaderMap::new();
    if uri.path().ends_with("/moved") {
        answer.insert(header::LOCATION, "http://elsewhere.example/".parse().unwrap());
        return (StatusCode::TEMPORARY_REDIRECT, answer, String::new());
    }
    answer.insert("x-vendor", "yes".parse().unwrap());
    let seen = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let said = json!({"method": method.as_str(), "uri": uri.to_string(), "key": seen("x-key"), "hop": seen("x-hop"),
        "encoding": seen("accept-encoding"), "body": body});
    (StatusCode::IM_A_TEAPOT, answer, said.to_string())
}

#[tokio::test]
async fn a_call_arrives_as_it_was_made_and_is_never_sent_past_the_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let vendor_address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(echo)).await });
    let scene = Scene::set(json!({})).await;
    let operations = json!({"rest": [{"method": "PUT", "path": "/things/*", "operation": "thing.put"}]});
    let vendor = data(json!({}), json!({ "operations": operations }));
    let seat = scene.seat_at(format!("http://{vendor_address}/api/"), "acme", &vendor);
    let request = scene.http.put(format!("{}/things/a%2Fb?x=1&y=%20", address(&seat))).body("hello");
    let request = request.header("x-key", "k").header("connection", "x-hop").header("x-hop", "1");
    let answer = request.header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-vendor"]), (418, &"yes".parse().unwrap()));
    let seen: serde_json::Value = answer.json().await.unwrap();
    let wanted = json!({"method": "PUT", "uri": "/api/things/a%2Fb?x=1&y=%20", "key": "k", "hop": null,
        "encoding": null, "body": "hello"});
    assert_eq!(seen, wanted);
    assert_eq!(seat.tally().sent.keys().collect::<Vec<_>>(), ["thing.put"]);
    let moved = scene.http.get(format!("{}/moved", address(&seat))).send().await.unwrap();
    assert!(moved.status() == 424 && !moved.headers().contains_key("location"));
    server.abort();
}

/// Who lives in the same process needs no socket, and has no other rights for it.
#[tokio::test]
async fn a_call_without_a_socket_is_a_call_like_any_other() {
    let scene = Scene::set(json!({"entityLookup": [[2, 60]]})).await;
    let vendor = data(json!({"entityLookup": [[2, 60]]}), json!({"hold_seconds": 1}));
    let seat = scene.seat("a", &vendor);
    assert!(scene.gateway.is_at(address(&seat)));
    let elsewhere = format!("{}1/x", address(&seat).rsplit_once('/').unwrap().0);
    assert!(!scene.gateway.is_at(&elsewhere) && !scene.gateway.is_at("https://example.net/x"));
    let request = |address: &str| {
        let builder = axum::http::Request::post(address).header("x-api-key", "a-key").header("x-account-id", "1");
        builder.body(json!({ "query": LOOK }).to_string().into()).unwrap()
    };
    let answer = scene.gateway.call(request(address(&seat))).await;
    let said: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!((answer.status().as_u16(), &said["data"]["entityLookup"]["total"]), (200, &json!(0)));
    // Both ways draw on one budget.
    assert_eq!(scene.ask(address(&seat), LOOK).await.0, 200);
    assert_eq!(scene.gateway.call(request(address(&seat))).await.status(), 429);
    assert_eq!(scene.control("calls").await["calls"].as_array().unwrap().len(), 2);
    let over = address(&seat).to_owned();
    drop(seat);
    assert_eq!(scene.gateway.call(request(&over)).await.status(), 403);
}
