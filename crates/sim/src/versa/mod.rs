use axum::Router;
pub fn router(_: crate::Options) -> Router {
    Router::new()
}
