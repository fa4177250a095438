//! Wrong input: a clear answer, in bounded time.

use std::io::Write;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::{Door, Memory};

/// The answer must be a problem with this status and code, and say what to do.
async fn refused(request: RequestBuilder, status: StatusCode, code: &str) {
    let response = request.send().await.unwrap();
    let answered = response.status();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    assert_eq!(answered, status, "{text}");
    assert_eq!(kind, "application/problem+json");
    let problem: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(problem["code"], code, "{text}");
    assert_eq!(problem["status"], status.as_u16());
    assert!(["title", "detail", "hint"].iter().all(|f| problem[f].as_str().is_some_and(|t| !t.is_empty())), "{text}");
}

#[tokio::test]
async fn whatever_is_wrong_is_said_with_a_code_and_a_hint() {
    let door = Door::open(Memory::Sqlite).await;
    let ask = |method: Method, path: &str| door.landform.request(method, path);
    use StatusCode as S;

    // Tokens.
    let no_token = crate::http().get(ask(Method::GET, "/v1/tenants").build().unwrap().url().clone());
    refused(no_token.try_clone().unwrap(), S::UNAUTHORIZED, "token_missing").await;
    refused(no_token.try_clone().unwrap().bearer_auth("lf_admin_00"), S::UNAUTHORIZED, "token_invalid").await;
    refused(no_token.try_clone().unwrap().bearer_auth("x"), S::UNAUTHORIZED, "token_invalid").await;
    refused(no_token.basic_auth("admin", Some("x")), S::UNAUTHORIZED, "token_invalid").await;

    // Routes, methods, names and ids.
    refused(ask(Method::GET, "/v1/nothing"), S::NOT_FOUND, "route_unknown").await;
    refused(ask(Method::GET, "/nothing"), S::NOT_FOUND, "route_unknown").await;
    refused(ask(Method::PATCH, "/v1/tenants"), S::METHOD_NOT_ALLOWED, "route_unknown").await;
    refused(ask(Method::PUT, "/v1/tenants/Not%20OK"), S::BAD_REQUEST, "name_invalid").await;
    refused(ask(Method::PUT, "/v1/tenants/..%2fx"), S::BAD_REQUEST, "name_invalid").await;
    refused(ask(Method::GET, "/v1/tenants/%ff"), S::BAD_REQUEST, "request_invalid").await;
    refused(ask(Method::GET, "/v1/tenants/nobody"), S::NOT_FOUND, "tenant_unknown").await;
    refused(ask(Method::GET, "/v1/tenants/nobody/deployments"), S::NOT_FOUND, "tenant_unknown").await;
    refused(ask(Method::GET, "/v1/templates/none"), S::NOT_FOUND, "template_unknown").await;
    refused(ask(Method::GET, "/v1/runs/1"), S::NOT_FOUND, "run_unknown").await;
    let run = "/v1/runs/00000000-0000-7000-8000-000000000000";
    refused(ask(Method::GET, run), S::NOT_FOUND, "run_unknown").await;
    for verb in ["approve", "reject", "cancel"] {
        refused(ask(Method::POST, &format!("{run}/{verb}")), S::NOT_FOUND, "run_unknown").await;
    }
    let recover = ask(Method::POST, &format!("{run}/recover")).json(&json!({"answers": {"a.b": {"adopt": "id"}}}));
    refused(recover, S::NOT_FOUND, "run_unknown").await;
    refused(ask(Method::POST, &format!("{run}/recover")), S::BAD_REQUEST, "request_invalid").await;
    refused(ask(Method::GET, &format!("{run}/events")), S::NOT_FOUND, "run_unknown").await;
    refused(ask(Method::GET, "/v1/runs?status=happy"), S::BAD_REQUEST, "request_invalid").await;
    refused(ask(Method::GET, "/v1/runs?colour=red"), S::BAD_REQUEST, "request_invalid").await;
    refused(ask(Method::GET, "/v1/tenants?limit=5"), S::BAD_REQUEST, "request_invalid").await;
    refused(ask(Method::DELETE, "/v1/tenants/nobody/deployments/x?plan_only=true"), S::BAD_REQUEST, "request_invalid")
        .await;
    let endless = json!({"name": "eternal", "role": "reader", "lifetime": 99_999_999_999_999_u64});
    refused(ask(Method::POST, "/v1/tokens").json(&endless), S::BAD_REQUEST, "request_invalid").await;

    // Deployments.
    let path = "/v1/tenants/acme/deployments/site";
    let spec = json!({"template": "it"});
    refused(ask(Method::PUT, path).json(&spec), S::NOT_FOUND, "tenant_unknown").await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    refused(ask(Method::PUT, path).json(&spec), S::NOT_FOUND, "template_unknown").await;
    door.landform.push_template("it", &[("main.tf", "")]).await.unwrap();
    refused(ask(Method::GET, path), S::NOT_FOUND, "deployment_unknown").await;
    refused(ask(Method::DELETE, path), S::NOT_FOUND, "deployment_unknown").await;
    refused(ask(Method::GET, &format!("{path}/outputs")), S::NOT_FOUND, "deployment_unknown").await;
    let old = json!({"template": "it", "template_version": 7});
    refused(ask(Method::PUT, path).json(&old), S::NOT_FOUND, "template_unknown").await;
    for wrong in [json!({}), json!([]), json!({"template": "it", "typo": 1}), json!({"template": "it", "engine": "x"})]
    {
        refused(ask(Method::PUT, path).json(&wrong), S::BAD_REQUEST, "request_invalid").await;
    }
    refused(ask(Method::PUT, path).body("{"), S::BAD_REQUEST, "request_invalid").await;
    let form =
        ask(Method::PUT, path).body(spec.to_string()).header("content-type", "application/x-www-form-urlencoded");
    refused(form, S::UNSUPPORTED_MEDIA_TYPE, "request_invalid").await;
    for twice in [
        r#"{"template": "it", "inputs": {"a": 1, "a": 2}}"#,
        r#"{"template": "it", "inputs": {"a": [{"b": 1, "b": 1}]}}"#,
    ] {
        refused(ask(Method::PUT, path).body(twice), S::BAD_REQUEST, "request_invalid").await;
        let line =
            format!("{{\"method\": \"put\", \"tenant\": \"acme\", \"deployment\": \"site\", \"spec\": {twice}}}");
        let answer = ask(Method::POST, "/v1/batch").body(line).send().await.unwrap().json::<Value>().await.unwrap();
        assert_eq!((&answer["status"], &answer["problem"]["code"]), (&json!(400), &json!("request_invalid")));
        assert!(answer["problem"]["detail"].as_str().unwrap().contains("stands there twice"), "{answer}");
    }
    refused(ask(Method::PUT, path).json(&spec).header("prefer", "wait=x"), S::BAD_REQUEST, "request_invalid").await;
    refused(ask(Method::PUT, path).json(&spec).header("if-match", "3"), S::BAD_REQUEST, "request_invalid").await;
    let masked = json!({"template": "it", "inputs": {"a": "(sensitive)"}});
    refused(ask(Method::PUT, path).json(&masked), S::UNPROCESSABLE_ENTITY, "input_masked").await;
    let named = json!({"template": "it", "inputs": {"a b": 1}});
    refused(ask(Method::PUT, path).json(&named), S::UNPROCESSABLE_ENTITY, "input_invalid").await;
    let large = json!({"template": "it", "inputs": {"a": "x".repeat(3 << 20)}});
    refused(ask(Method::PUT, path).json(&large), S::PAYLOAD_TOO_LARGE, "body_too_large").await;
    let deep = format!("{{\"template\":\"it\",\"inputs\":{{\"a\":{}{}}}}}", "[".repeat(5000), "]".repeat(5000));
    refused(ask(Method::PUT, path).body(deep), S::BAD_REQUEST, "request_invalid").await;
}

fn gzipped_tar(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, kind, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if *kind == tar::EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// With what there is instead, as HTTP wants it; also where no token is needed.
#[tokio::test]
async fn a_method_that_is_not_there_is_answered_with_those_that_are() {
    let door = Door::open(Memory::Sqlite).await;
    for (method, path, allowed) in [
        (Method::PATCH, "/v1/tenants", "GET, HEAD"),
        (Method::POST, "/v1/tenants/acme", "GET, PUT, DELETE, HEAD"),
        (Method::GET, "/v1/batch", "POST"),
        (Method::PUT, "/v1/state/acme/site", "GET, POST, DELETE, LOCK, UNLOCK, HEAD"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::DELETE, "/openapi.json", "GET,HEAD"),
    ] {
        let answer = door.landform.request(method.clone(), path).send().await.unwrap();
        assert_eq!(answer.headers()["allow"], allowed, "{method} {path}");
        refused(door.landform.request(method, path), StatusCode::METHOD_NOT_ALLOWED, "route_unknown").await;
    }
}

#[tokio::test]
async fn hostile_archives_leave_nothing_behind() {
    use StatusCode as S;
    use tar::EntryType::{Regular, Symlink};
    let door = Door::open(Memory::Sqlite).await;
    let push = |bytes: Vec<u8>| door.landform.request(Method::PUT, "/v1/templates/it").body(bytes);
    let main = ("main.tf", Regular, b"".as_slice());
    let invalid = [
        b"not an archive".to_vec(),
        gzipped_tar(&[main, ("link.tf", Symlink, b"")]),
        gzipped_tar(&[main, ("../up.tf", Regular, b"")]),
        gzipped_tar(&[main, ("/etc/abs.tf", Regular, b"")]),
        gzipped_tar(&[("readme", Regular, b"no configuration")]),
    ];
    for archive in invalid {
        refused(push(archive), S::UNPROCESSABLE_ENTITY, "template_invalid").await;
    }
    let zeroes = vec![0; 8 << 20];
    refused(push(gzipped_tar(&[main, ("bomb", Regular, &zeroes)])), S::PAYLOAD_TOO_LARGE, "template_too_large").await;
    let mut noise = vec![0u8; 17 << 20];
    std::fs::File::open("/dev/urandom").and_then(|mut f| std::io::Read::read_exact(&mut f, &mut noise)).unwrap();
    noise.flush().unwrap();
    refused(push(noise), S::PAYLOAD_TOO_LARGE, "body_too_large").await;
    let list = door.landform.call("GET", "/v1/templates", None).await.unwrap();
    assert_eq!(list["templates"], json!([]));

    let first = door.landform.push_template("it", &[("main.tf", "# one")]).await.unwrap();
    let same = door.landform.push_template("it", &[("main.tf", "# one")]).await.unwrap();
    let other = door.landform.push_template("it", &[("main.tf", "# two")]).await.unwrap();
    assert_eq!((&first["version"], &same["version"], &other["version"]), (&json!(1), &json!(1), &json!(2)));
}
