//! What `/metrics` says, in the text format of Prometheus.

use std::fmt::Write;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use landform_store::metrics::{Metric, Sample, Value};

use crate::Server;
use crate::problem::Refusal;

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn get(State(server): State<Server>) -> Result<Response, Refusal> {
    let samples = server.store.metrics().await?;
    Ok(([(header::CONTENT_TYPE, FORMAT)], render(&samples)).into_response())
}

fn render(samples: &[Sample]) -> String {
    let mut text = String::new();
    for metric in Metric::ALL {
        let of_metric = samples.iter().filter(|sample| sample.metric == *metric);
        let _ = writeln!(text, "# HELP {} {}", metric.name(), metric.help());
        let _ = writeln!(text, "# TYPE {} {}", metric.name(), metric.kind());
        for sample in of_metric {
            line(&mut text, *metric, &sample.labels, &sample.value);
        }
    }
    text
}

fn line(text: &mut String, metric: Metric, labels: &[(&'static str, String)], value: &Value) {
    let name = metric.name();
    match value {
        Value::Number(number) => {
            let _ = writeln!(text, "{name}{} {number}", braces(labels, None));
        }
        Value::Histogram { buckets, sum, count } => {
            for (bound, below) in buckets {
                let _ = writeln!(text, "{name}_bucket{} {below}", braces(labels, Some(&bound.to_string())));
            }
            let _ = writeln!(text, "{name}_bucket{} {count}", braces(labels, Some("+Inf")));
            let _ = writeln!(text, "{name}_sum{} {sum}", braces(labels, None));
            let _ = writeln!(text, "{name}_count{} {count}", braces(labels, None));
        }
    }
}

/// Labels are words of ours, so nothing in them needs escaping.
fn braces(labels: &[(&'static str, String)], below: Option<&str>) -> String {
    let below = below.map(|bound| ("le", bound.to_owned()));
    let pairs: Vec<String> =
        labels.iter().cloned().chain(below).map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_below_their_metric() {
        let samples = [
            Sample { metric: Metric::RunsWaiting, labels: vec![("for", "worker".into())], value: Value::Number(3.0) },
            Sample {
                metric: Metric::PhaseSeconds,
                labels: vec![("phase", "plan".into())],
                value: Value::Histogram { buckets: vec![(0.5, 1), (1.0, 2)], sum: 1.25, count: 3 },
            },
        ];
        let text = render(&samples);
        assert!(
            text.contains("# TYPE landform_runs_waiting gauge\nlandform_runs_waiting{for=\"worker\"} 3\n"),
            "{text}"
        );
        assert!(text.contains("landform_phase_seconds_bucket{phase=\"plan\",le=\"0.5\"} 1\n"), "{text}");
        assert!(text.contains("landform_phase_seconds_bucket{phase=\"plan\",le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("landform_phase_seconds_sum{phase=\"plan\"} 1.25\n"), "{text}");
    }
}
