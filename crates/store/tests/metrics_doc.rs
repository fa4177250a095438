//! `docs/metrics.md` is made from the code. Run with `UPDATE_DOCS=1` to write it anew.

use landform_store::metrics::Metric;

#[test]
fn the_page_about_metrics_is_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).expect("docs/metrics.md can be written");
    }
    let written = std::fs::read_to_string(path).expect("docs/metrics.md exists");
    assert!(written == page, "docs/metrics.md is not what the code says; run this test with UPDATE_DOCS=1");
}

fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\nMade from the code (`crates/store/src/metrics`); do not edit.\n\n\
         `GET /metrics` answers in the text format of Prometheus, to any token that is not bound to a tenant (the role\n\
         `reader` is enough). A figure of *all* is the whole installation's, whichever process is asked: do not add them up.\n\
         A figure of a *process* counts from its start. A process with `--role worker` is asked at its `--metrics-listen`.\n\n\
         | name | kind | of | labels | what it is |\n|---|---|---|---|---|\n",
    );
    for metric in Metric::ALL {
        let (name, kind, scope, labels) = (metric.name(), metric.kind(), metric.scope(), metric.labels());
        page += &format!("| `{name}` | {kind} | {scope} | {labels} | {} |\n", metric.help());
    }
    page
}
