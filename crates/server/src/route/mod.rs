//! One table says what there is: each row has a method, a path, the right it needs and whose things it touches. The
//! router, the OpenAPI document and the test that tries another tenant's ids everywhere are made from it, so none of
//! them can forget a row.

pub(crate) mod gate;
pub(crate) mod openapi;
mod table;

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::Method;
use axum::response::Response;
use futures::FutureExt;
use futures::future::BoxFuture;
use landform_domain::Right;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use crate::Server;

pub(crate) use table::table;

/// Whose things a row touches, and so who must not even learn that they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenancy {
    /// Those of the `{tenant}` in the path.
    Tenant,
    /// Those of the tenant of the `{run}` in the path.
    Run,
    /// Many tenants': the handler narrows what it touches to the actor's own.
    Narrowed,
    /// Everybody's.
    Shared,
    /// The whole installation's: not for those who are bound to a tenant.
    Fleet,
}

impl Tenancy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Tenancy::Tenant => "tenant",
            Tenancy::Run => "run",
            Tenancy::Narrowed => "narrowed",
            Tenancy::Shared => "shared",
            Tenancy::Fleet => "fleet",
        }
    }
}

type Handle = Arc<dyn Fn(Request, Server) -> BoxFuture<'static, Response> + Send + Sync>;

/// Schemas that a document needs besides, by name.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

type Describe = fn(&mut Schemas) -> RefOr<Schema>;

/// A body as the document describes it.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    Json(Describe),
    /// One JSON document a line.
    Lines(Describe),
    /// Anything else, by its media type.
    Raw(&'static str),
}

#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) right: Right,
    pub(crate) tenancy: Tenancy,
    pub(crate) about: &'static str,
    pub(crate) query: Option<fn() -> Vec<Parameter>>,
    pub(crate) takes: Option<Content>,
    pub(crate) answers: (u16, Option<Content>),
    handle: Handle,
}

impl Route {
    pub(crate) fn new<T: 'static>(
        (method, path): (Method, &'static str),
        right: Right,
        tenancy: Tenancy,
        handler: impl Handler<T, Server>,
        about: &'static str,
    ) -> Route {
        let handle: Handle = Arc::new(move |request, server| handler.clone().call(request, server).boxed());
        Route { method, path, right, tenancy, about, query: None, takes: None, answers: (200, None), handle }
    }

    pub(crate) fn asks<T: IntoParams>(self) -> Route {
        Route { query: Some(|| T::into_params(|| Some(ParameterIn::Query))), ..self }
    }

    pub(crate) fn takes<T: ToSchema>(self) -> Route {
        Route { takes: Some(Content::Json(describe::<T>)), ..self }
    }

    pub(crate) fn takes_lines<T: ToSchema>(self) -> Route {
        Route { takes: Some(Content::Lines(describe::<T>)), ..self }
    }

    pub(crate) fn answers_lines<T: ToSchema>(self) -> Route {
        Route { answers: (200, Some(Content::Lines(describe::<T>))), ..self }
    }

    pub(crate) fn takes_raw(self, kind: &'static str) -> Route {
        Route { takes: Some(Content::Raw(kind)), ..self }
    }

    pub(crate) fn answers<T: ToSchema>(self, status: u16) -> Route {
        Route { answers: (status, Some(Content::Json(describe::<T>))), ..self }
    }

    pub(crate) fn answers_raw(self, kind: &'static str) -> Route {
        Route { answers: (200, Some(Content::Raw(kind))), ..self }
    }

    pub(crate) fn answers_nothing(self) -> Route {
        Route { answers: (204, None), ..self }
    }
}

/// A reference to the type's schema, which is added to the document together with those it needs.
fn describe<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
    RefOr::Ref(Ref::from_schema_name(T::name()))
}
