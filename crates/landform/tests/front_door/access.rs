//! Who may do what, and what belongs to whom.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{Door, Memory};

impl Door {
    async fn token(&self, role: &str, tenant: Option<&str>) -> String {
        let body = json!({"name": format!("{role} for tests"), "role": role, "tenant": tenant});
        let made = self.landform.call("POST", "/v1/tokens", Some(body)).await.unwrap();
        made["secret"].as_str().unwrap().to_owned()
    }

    /// The status and the code, if it is a refusal.
    async fn ask_as(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> (StatusCode, String) {
        let mut request = self.landform.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let mut request = request.build().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let response = crate::http().execute(request).await.unwrap();
        let status = response.status();
        let problem: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// Two tenants, each with a deployment whose run waits for approval.
async fn two_tenants(memory: Memory) -> (Door, Value) {
    let door = Door::open(memory).await;
    door.landform.push_template("it", &[("main.tf", r#"resource "terraform_data" "it" {}"#)]).await.unwrap();
    let mut run = Value::Null;
    for tenant in ["acme", "other"] {
        door.landform.call("PUT", &format!("/v1/tenants/{tenant}"), None).await.unwrap();
        let path = format!("/v1/tenants/{tenant}/deployments/site");
        let body = json!({"template": "it", "requires_approval": true});
        let request = door.landform.request(Method::PUT, &path).header("prefer", "wait=60").json(&body);
        run = landform_testkit::landform::answer(request).await.unwrap()["run"].clone();
        assert_eq!(run["status"], "awaiting_approval", "{run}");
    }
    (door, run)
}

/// Every route of the router, with the ids of another tenant.
async fn another_tenant_does_not_exist(memory: Memory) {
    let (door, run) = two_tenants(memory).await;
    let token = door.token("admin", Some("acme")).await;
    let others =
        door.landform.call("POST", "/v1/tokens", Some(json!({"name": "x", "role": "reader", "tenant": "other"})));
    let others = others.await.unwrap()["token"]["id"].as_str().unwrap().to_owned();
    let values = json!({"variables": {"key": "s3cret"}});
    door.landform.call("PUT", "/v1/tenants/other/connections/cloud", Some(values)).await.unwrap();
    let hook = json!({"url": "https://example.org/hook"});
    let hook = door.landform.call("POST", "/v1/tenants/other/webhooks", Some(hook)).await.unwrap();
    let webhook = hook["webhook"]["id"].as_str().unwrap().to_owned();
    let document = door.landform.call("GET", "/openapi.json", None).await.unwrap();
    let before = door.landform.call("GET", "/v1/audit?limit=1", None).await.unwrap();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let own_methods = item["x-additional-operations"].as_object().into_iter().flatten();
        let operations = item.as_object().unwrap().iter().filter(|(name, _)| *name != "x-additional-operations");
        for (method, operation) in operations.chain(own_methods) {
            let method = method.to_uppercase();
            let tenancy = operation["x-tenancy"].as_str().unwrap();
            let filled = path
                .replace("{tenant}", "other")
                .replace("{deployment}", "site")
                .replace("{run}", run["id"].as_str().unwrap())
                .replace("{token}", &others)
                .replace("{connection}", "cloud")
                .replace("{webhook}", &webhook)
                .replace("{template}", "it")
                .replace("{version}", "1");
            assert!(!filled.contains('{'), "{path}: give the test an id of the other tenant for it");
            let (status, code) = door.ask_as(&token, &method, &filled, None).await;
            match tenancy {
                "tenant" | "run" => assert_eq!(status, StatusCode::NOT_FOUND, "{method} {filled}: {code}"),
                "fleet" => {
                    assert_eq!((status, code.as_str()), (StatusCode::FORBIDDEN, "forbidden"), "{method} {filled}")
                }
                "narrowed" if path.contains('{') => {
                    assert_eq!(status, StatusCode::NOT_FOUND, "{method} {filled}: {code}")
                }
                "shared" | "narrowed" if method == "GET" => {
                    let asked = door.ask_as(&token, "GET", &format!("{filled}?tenant=other"), None).await.0;
                    assert!(
                        matches!(asked, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST | StatusCode::OK),
                        "{filled}"
                    );
                    let mut request = door.landform.request(Method::GET, &filled).build().unwrap();
                    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
                    let body = crate::http().execute(request).await.unwrap().text().await.unwrap();
                    assert!(!body.contains("\"other\""), "{filled} shows what is another tenant's: {body}");
                }
                "narrowed" | "shared" => {}
                other => panic!("{other}"),
            }
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
    assert_eq!(door.ask_as(&token, "GET", "/v1/runs?tenant=other", None).await.1, "tenant_unknown");
    let line = json!({"method": "delete", "tenant": "other", "deployment": "site"});
    let mut request = door.landform.request(Method::POST, "/v1/batch").body(line.to_string()).build().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    let answer = crate::http().execute(request).await.unwrap().text().await.unwrap();
    assert!(answer.contains("tenant_unknown"), "a line of a batch, too: {answer}");
    let after = door.landform.call("GET", "/v1/audit?limit=1", None).await.unwrap();
    assert_eq!(after, before, "nothing happened");
    assert_eq!(
        door.landform.call("GET", &format!("/v1/runs/{}", run["id"].as_str().unwrap()), None).await.unwrap(),
        run
    );
}

#[tokio::test]
async fn another_tenant_does_not_exist_on_sqlite() {
    another_tenant_does_not_exist(Memory::Sqlite).await;
}

#[tokio::test]
async fn another_tenant_does_not_exist_on_postgres() {
    another_tenant_does_not_exist(Memory::Postgres).await;
}

#[tokio::test]
async fn roles_and_tokens() {
    let (door, run) = two_tenants(Memory::Sqlite).await;
    let site = "/v1/tenants/other/deployments/site";
    let approve = format!("/v1/runs/{}/approve", run["id"].as_str().unwrap());
    let spec = || Some(json!({"template": "it", "inputs": {}}));
    let forbidden = (StatusCode::FORBIDDEN, "forbidden".to_owned());

    let reader = door.token("reader", None).await;
    assert_eq!(door.ask_as(&reader, "GET", site, None).await.0, StatusCode::OK);
    for (method, path) in [("DELETE", site), ("POST", &approve), ("GET", "/v1/tokens"), ("GET", "/v1/audit")] {
        assert_eq!(door.ask_as(&reader, method, path, None).await, forbidden, "{method} {path}");
    }
    assert_eq!(door.ask_as(&reader, "GET", &format!("{site}/state"), None).await, forbidden);
    assert_eq!(door.ask_as(&reader, "GET", &format!("{site}/outputs?show_sensitive=true"), None).await, forbidden);

    let operator = door.token("operator", Some("other")).await;
    assert_eq!(door.ask_as(&operator, "POST", &approve, None).await, forbidden);
    let off = Some(json!({"template": "it", "requires_approval": false}));
    assert_eq!(door.ask_as(&operator, "PUT", site, off).await.1, "approval_required");
    assert_eq!(door.ask_as(&operator, "PUT", site, spec()).await.0, StatusCode::ACCEPTED);
    assert_eq!(door.ask_as(&operator, "PUT", "/v1/templates/it", None).await.0, StatusCode::FORBIDDEN);

    let approver = door.token("approver", Some("other")).await;
    assert_eq!(door.ask_as(&approver, "PUT", site, spec()).await, forbidden);
    assert_eq!(door.ask_as(&approver, "POST", &approve, None).await.0, StatusCode::OK);

    // The command line does the same, and a withdrawn token is worth nothing.
    let made = door.done(&["token", "create", "ci", "--role", "reader", "--tenant", "acme", "--json"]).await.json();
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    assert!(door.done(&["token", "list"]).await.stdout.contains(id));
    let listed = door.done(&["tenant", "list", "--token", secret, "--json"]).await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    door.done(&["token", "revoke", id]).await;
    assert_eq!(door.type_in(&["tenant", "list", "--token", secret]).await.exit, 3);
    let log = door.done(&["audit", "--action", "token.", "--json"]).await.json();
    assert_eq!((&log[0]["action"], &log[0]["target"]), (&json!("token.revoke"), &json!(id)));
    assert_eq!(log[0]["origin"], "127.0.0.1");
    let text = door.done(&["audit"]).await.stdout;
    assert!(text.contains("run.approve") && text.contains("approver for tests"), "{text}");
    let wrong = json!({"name": "x", "role": "root"});
    assert_eq!(door.ask_as(&reader, "POST", "/v1/tokens", Some(wrong.clone())).await, forbidden);
    let admin = door.token("admin", None).await;
    assert_eq!(door.ask_as(&admin, "POST", "/v1/tokens", Some(wrong)).await.0, StatusCode::BAD_REQUEST);
}
