//! Signed messages about runs, sent again until somebody takes them; and an encrypted door.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{Door, Memory, binary};

const PLAIN: &str = r#"resource "terraform_data" "it" {}"#;

/// Takes requests one after the other: the first is refused, the second is sent elsewhere, the others are taken.
async fn listener() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shared = heard.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let text = request(&mut stream).await;
            let count = {
                let mut heard = shared.lock().unwrap();
                heard.push(text);
                heard.len()
            };
            let answer = match count {
                1 => "HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                2 => {
                    "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                }
                _ => "HTTP/1.1 204 Thanks\r\nconnection: close\r\n\r\n",
            };
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, heard)
}

async fn request(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = Vec::new();
    while !is_whole(&text) {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await.unwrap() {
            0 => break,
            read => text.extend_from_slice(&buffer[..read]),
        }
    }
    String::from_utf8(text).unwrap()
}

/// The message, if it is signed with this secret.
fn check_signature(request: &str, secret: &str) -> Value {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let signed = format!(
        "{}.{}.{body}",
        header(head, "landform-webhook-id").unwrap(),
        header(head, "landform-webhook-timestamp").unwrap()
    );
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(signed.as_bytes());
    let expected: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(header(head, "landform-webhook-signature").unwrap(), format!("v1={expected}"));
    serde_json::from_str(body).unwrap()
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = header(head, "content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
    body.len() >= length
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)))
        .map(|(_, v)| v)
}

async fn a_message_is_signed_and_sent_until_it_is_taken(memory: Memory) {
    let door = Door::open(memory).await;
    door.landform.call("PUT", "/v1/tenants/acme", None).await.unwrap();
    door.landform.push_template("it", &[("main.tf", PLAIN)]).await.unwrap();
    let (address, heard) = listener().await;
    let spec = json!({"url": address, "events": ["succeeded"]});
    let made = door.landform.call("POST", "/v1/tenants/acme/webhooks", Some(spec)).await.unwrap();
    let (id, secret) = (made["webhook"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let forbidden = json!({"url": "http://localhost:1/"});
    let forbidden = door.landform.call("POST", "/v1/tenants/acme/webhooks", Some(forbidden)).await.unwrap();
    let put = json!({"template": "it"});
    let run = door.landform.call("PUT", "/v1/tenants/acme/deployments/site", Some(put)).await.unwrap();

    let path = format!("/v1/tenants/acme/webhooks/{id}/deliveries");
    let list = loop {
        let list = door.landform.call("GET", &path, None).await.unwrap()["deliveries"].clone();
        if list[0]["status"] == "delivered" {
            break list;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!(list.as_array().unwrap().len(), 1, "only what was asked for: {list}");
    assert_eq!((&list[0]["event"], &list[0]["attempts"]), (&json!("run.succeeded"), &json!(3)));

    let heard = heard.lock().unwrap().clone();
    let message = check_signature(&heard[2], secret);
    assert_eq!((&message["type"], &message["run"]), (&json!("run.succeeded"), &run["run"]["id"]));
    let id_of = |text: &str| header(text.split_once("\r\n\r\n").unwrap().0, "landform-webhook-id").unwrap().to_owned();
    assert_eq!(id_of(&heard[0]), id_of(&heard[2]), "the same message");

    // A name that means this machine is refused when it is connected to, and it can be seen.
    let id = forbidden["webhook"]["id"].as_str().unwrap();
    let path = format!("/v1/tenants/acme/webhooks/{id}/deliveries");
    let error = loop {
        let list = door.landform.call("GET", &path, None).await.unwrap();
        if let Some(error) = list["deliveries"][0]["error"].as_str() {
            break error.to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert!(error.contains("not a public address"), "{error}");
    for wrong in ["ftp://x/", "http://", "nonsense", "http://user:pass@host/"] {
        let spec = Some(json!({"url": wrong}));
        assert!(door.landform.call("POST", "/v1/tenants/acme/webhooks", spec).await.is_err(), "{wrong}");
    }
    door.done(&["webhook", "delete", "acme", id]).await;
    assert_eq!(door.done(&["webhook", "list", "acme", "--json"]).await.json().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_is_signed_and_sent_until_it_is_taken_on_sqlite() {
    a_message_is_signed_and_sent_until_it_is_taken(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_message_is_signed_and_sent_until_it_is_taken_on_postgres() {
    a_message_is_signed_and_sent_until_it_is_taken(Memory::Postgres).await;
}

/// Takes everything.
async fn taker() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/fleet", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shared = heard.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let text = request(&mut stream).await;
            shared.lock().unwrap().push(text);
            stream.write_all(b"HTTP/1.1 204 Thanks\r\nconnection: close\r\n\r\n").await.unwrap();
        }
    });
    (address, heard)
}

async fn a_webhook_of_the_fleet_hears_of_every_tenant(memory: Memory) {
    let door = Door::open(memory).await;
    door.landform.push_template("it", &[("main.tf", PLAIN)]).await.unwrap();
    let (address, heard) = taker().await;
    let made = door.done(&["webhook", "fleet", "create", &address, "--event", "succeeded", "--json"]).await.json();
    let (id, secret) = (made["webhook"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    for tenant in ["acme", "other"] {
        door.landform.call("PUT", &format!("/v1/tenants/{tenant}"), None).await.unwrap();
        let path = format!("/v1/tenants/{tenant}/deployments/site");
        door.landform.call("PUT", &path, Some(json!({"template": "it"}))).await.unwrap();
    }
    let path = format!("/v1/webhooks/{id}/deliveries");
    let list = loop {
        let list = door.landform.call("GET", &path, None).await.unwrap()["deliveries"].clone();
        let all = list.as_array().unwrap();
        if all.len() == 2 && all.iter().all(|delivery| delivery["status"] == "delivered") {
            break list;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    let mut tenants = vec![list[0]["tenant"].as_str().unwrap(), list[1]["tenant"].as_str().unwrap()];
    tenants.sort_unstable();
    assert_eq!(tenants, ["acme", "other"]);
    for text in heard.lock().unwrap().iter() {
        check_signature(text, secret);
    }
    // It is nobody's business who sees one tenant only, and a tenant's own webhooks are others.
    let spec = json!({"name": "bound", "role": "admin", "tenant": "acme"});
    let bound = door.landform.call("POST", "/v1/tokens", Some(spec)).await.unwrap();
    for path in ["/v1/webhooks".to_owned(), path] {
        let asked = crate::http().get(format!("{}{path}", door.landform.base()));
        let refused = asked.bearer_auth(bound["secret"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(refused.status(), 403);
    }
    assert_eq!(door.done(&["webhook", "list", "acme", "--json"]).await.json(), json!([]));
    assert!(door.landform.call("DELETE", &format!("/v1/tenants/acme/webhooks/{id}"), None).await.is_err());
    // The secret is sealed with a key of the installation, which follows the master key.
    let door = door.stop_and(&["key", "rotate"]).await;
    let path = "/v1/tenants/acme/deployments/more";
    door.landform.call("PUT", path, Some(json!({"template": "it"}))).await.unwrap();
    while heard.lock().unwrap().len() < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    check_signature(&heard.lock().unwrap()[2], secret);
    door.done(&["webhook", "fleet", "delete", id]).await;
    assert_eq!(door.done(&["webhook", "fleet", "list", "--json"]).await.json(), json!([]));
}

#[tokio::test]
async fn a_webhook_of_the_fleet_hears_of_every_tenant_on_sqlite() {
    a_webhook_of_the_fleet_hears_of_every_tenant(Memory::Sqlite).await;
}

#[tokio::test]
async fn a_webhook_of_the_fleet_hears_of_every_tenant_on_postgres() {
    a_webhook_of_the_fleet_hears_of_every_tenant(Memory::Postgres).await;
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

#[tokio::test]
async fn the_door_speaks_tls_with_a_given_certificate() {
    let data = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (data.path().join("cert.pem"), data.path().join("key.pem"));
    std::fs::write(&certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
    std::fs::write(&key, pem("PRIVATE KEY", &made.signing_key.serialize_der())).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let command = |args: &[&str]| {
        let mut command = tokio::process::Command::new(binary());
        command
            .args(args)
            .env("LANDFORM_DATA", data.path())
            .env("LANDFORM_SERVER", format!("https://127.0.0.1:{port}"));
        command.env_remove("LANDFORM_TOKEN").stdin(Stdio::null()).kill_on_drop(true);
        command
    };
    let listen = format!("127.0.0.1:{port}");
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let serve = ["serve", "--listen", &listen, "--tls-certificate", certificate, "--tls-key", key];
    let _server = command(&serve).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        let put = command(&["tenant", "put", "acme", "--ca", certificate]).output().await.unwrap();
        match put.status.code() {
            Some(0) => break,
            // It is not there yet, or has no token yet.
            Some(2 | 4) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            _ => panic!("{put:?}"),
        }
    }
    let untrusted = command(&["tenant", "list"]).output().await.unwrap();
    assert_eq!(untrusted.status.code(), Some(4), "a certificate that nobody vouches for: {untrusted:?}");
    let plain = crate::http().get(format!("http://127.0.0.1:{port}/healthz")).send().await;
    assert!(plain.is_err(), "no word in clear");
}
