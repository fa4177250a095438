//! Who asks: a user with a password, or with a token that was given for one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Refusal;
use crate::json::text;

/// Any user may log in, as long as there is a password that is not this one.
const WRONG_PASSWORD: &str = "wrong";

#[derive(Debug, Default)]
pub struct Sessions {
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    count: u64,
    users: HashMap<String, String>,
}

impl Sessions {
    pub fn login(&self, body: &Value) -> Result<Value, Refusal> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let user = match text(body, "grant_type").as_str() {
            "password" => {
                let (user, password) = (text(body, "username"), text(body, "password"));
                checked(&user, &password)?
            }
            "refresh_token" => {
                let token = text(body, "refresh_token");
                given.users.get(&token).cloned().ok_or_else(|| denied("the refresh token is not known"))?
            }
            _ => return Err(Refusal::new(StatusCode::BAD_REQUEST, "grant_type is password or refresh_token")),
        };
        given.count += 1;
        let (access, refresh) = (format!("access-{}", given.count), format!("refresh-{}", given.count));
        given.users.insert(access.clone(), user.clone());
        given.users.insert(refresh.clone(), user);
        Ok(json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": "900"}))
    }

    pub fn user(&self, headers: &HeaderMap) -> Result<String, Refusal> {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if let Some(token) = value.strip_prefix("Bearer ") {
            let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            return given.users.get(token).cloned().ok_or_else(|| denied("the token is not known"));
        }
        let basic = value.strip_prefix("Basic ").and_then(|encoded| STANDARD.decode(encoded).ok());
        let basic = basic.and_then(|bytes| String::from_utf8(bytes).ok());
        let (user, password) = basic.as_deref().and_then(|text| text.split_once(':')).unwrap_or_default();
        checked(user, password)
    }
}

fn checked(user: &str, password: &str) -> Result<String, Refusal> {
    if user.is_empty() || password.is_empty() || password == WRONG_PASSWORD {
        return Err(denied("user or password is wrong"));
    }
    Ok(user.to_owned())
}

fn denied(why: &str) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, why)
}
