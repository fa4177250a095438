use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use landform_api::ProblemBody;
use landform_domain::{Class, Code, Problem};
use landform_store::StoreError;

/// Every "no" of this server, sent as problem+json.
#[derive(Debug)]
pub(crate) struct Refusal {
    problem: Problem,
    status: StatusCode,
    /// The methods that there are instead.
    allow: Option<String>,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Problem::new(code, message).into()
    }

    /// For what HTTP has a status of its own for and the product has not.
    pub fn with_status(self, status: StatusCode) -> Refusal {
        Refusal { status, ..self }
    }

    pub fn allowing(self, methods: String) -> Refusal {
        Refusal { allow: Some(methods), ..self }
    }
}

impl Refusal {
    /// As it is sent.
    pub fn body(&self) -> ProblemBody {
        let mut body = ProblemBody::of(&self.problem);
        body.status = Some(self.status.as_u16());
        body
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let status = match problem.class() {
            Class::Invalid => StatusCode::BAD_REQUEST,
            Class::Unauthenticated => StatusCode::UNAUTHORIZED,
            Class::Forbidden => StatusCode::FORBIDDEN,
            Class::NotFound => StatusCode::NOT_FOUND,
            Class::Conflict => StatusCode::CONFLICT,
            Class::Locked => StatusCode::LOCKED,
            Class::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Class::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            Class::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Class::Limited => StatusCode::TOO_MANY_REQUESTS,
            Class::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            // A run that failed is no failed request; whoever sends its problem as one has a bug.
            Class::Failed | Class::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal { problem, status, allow: None }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        let refusal = Refusal::from(error.problem());
        if refusal.status.is_server_error() {
            tracing::error!(%error, "a request could not be answered");
        }
        refusal
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(methods) = self.allow.as_deref().and_then(|methods| HeaderValue::from_str(methods).ok()) {
            headers.insert(header::ALLOW, methods);
        }
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // The rest of the body may still be on its way: the next request needs a connection of its own.
            StatusCode::PAYLOAD_TOO_LARGE => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
