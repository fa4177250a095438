//! Many writes in one request: a line of JSON in for each, a line of JSON out for each, in the same order. Each is its own
//! transaction and has its own answer, so one that is refused holds up no other.

use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, BoxStream, Stream, StreamExt};
use landform_api::{BatchLine, BatchMethod, BatchResult, ProblemBody};
use landform_domain::{Actor, Code};

use super::{key, write};
use crate::problem::Refusal;
use crate::route::gate::unknown_tenant;
use crate::{Server, view};

/// What a single write may have, and a little for its names.
const LONGEST_LINE: usize = (2 << 20) + (4 << 10);
const MOST_LINES: u64 = 100_000;

/// A client that sends nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// Lines that are worked on at the same time.
const AT_ONCE: usize = 32;

pub(crate) async fn accept(State(server): State<Server>, Extension(actor): Extension<Actor>, body: Body) -> Response {
    let answers = lines(body).map(move |(number, line)| answer(server.clone(), actor.clone(), number, line));
    let written = answers.buffered(AT_ONCE).map(|result| {
        let mut line = serde_json::to_vec(&result).expect("a result is plain data");
        line.push(b'\n');
        Ok::<_, std::convert::Infallible>(Bytes::from(line))
    });
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))];
    (kind, Body::from_stream(written)).into_response()
}

async fn answer(server: Server, actor: Actor, number: u64, line: Result<Vec<u8>, Refusal>) -> BatchResult {
    let answered = match line {
        Ok(line) => one(&server, &actor, &line).await,
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(run) => BatchResult { line: number, status: StatusCode::ACCEPTED.as_u16(), run: Some(run), problem: None },
        Err(refusal) => {
            let problem: ProblemBody = refusal.body();
            BatchResult { line: number, status: problem.status.unwrap_or_default(), run: None, problem: Some(problem) }
        }
    }
}

async fn one(server: &Server, actor: &Actor, line: &[u8]) -> Result<landform_api::Run, Refusal> {
    let line: BatchLine = landform_api::read_json(line).map_err(|e| {
        // It is line 1 of itself, and another one of the batch.
        let why = e.to_string().replace(" at line 1 column ", " at column ");
        Refusal::new(Code::RequestInvalid, format!("the line cannot be read: {why}"))
    })?;
    if !actor.sees(&line.tenant) {
        return Err(unknown_tenant(&line.tenant));
    }
    let (tenant, name) = (line.tenant, line.deployment);
    let accepted = match (line.method, line.spec) {
        (BatchMethod::Put, Some(spec)) => {
            let key = key(line.idempotency_key, actor, "PUT", &tenant, &name, &spec)?;
            server.store.put_deployment(write(tenant, name, spec, line.if_generation)?, key, actor).await?
        }
        (BatchMethod::Delete, None) => {
            let key = key(line.idempotency_key, actor, "DELETE", &tenant, &name, &())?;
            server.store.delete_deployment(&tenant, &name, line.if_generation, key, actor).await?
        }
        (BatchMethod::Put, None) => return Err(Refusal::new(Code::RequestInvalid, "a `put` has a `spec`")),
        (BatchMethod::Delete, Some(_)) => return Err(Refusal::new(Code::RequestInvalid, "a `delete` has no `spec`")),
    };
    Ok(view::run(accepted.run))
}

struct Reading {
    chunks: BoxStream<'static, Result<Bytes, axum::Error>>,
    buffer: Vec<u8>,
    number: u64,
    ended: bool,
}

/// The lines of a body as they come, with their numbers; empty ones are passed over. What breaks the reading is the last
/// item.
fn lines(body: Body) -> impl Stream<Item = (u64, Result<Vec<u8>, Refusal>)> {
    let reading = Reading { chunks: body.into_data_stream().boxed(), buffer: Vec::new(), number: 0, ended: false };
    stream::unfold(reading, |mut reading| async move {
        let line = reading.next().await?;
        Some(((reading.number, line), reading))
    })
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Vec<u8>, Refusal>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                match self.take(line) {
                    Some(line) => return Some(line),
                    None => continue,
                }
            }
            if self.ended {
                let line = std::mem::take(&mut self.buffer);
                return self.take(line);
            }
            if self.buffer.len() > LONGEST_LINE {
                return Some(self.broken(Code::BodyTooLarge, format!("a line has more than {LONGEST_LINE} bytes")));
            }
            match tokio::time::timeout(SILENCE, self.chunks.next()).await {
                Ok(Some(Ok(chunk))) => self.buffer.extend_from_slice(&chunk),
                Ok(None) => self.ended = true,
                Ok(Some(Err(_))) => return Some(self.broken(Code::RequestInvalid, "the body ended early".into())),
                Err(_) => return Some(self.broken(Code::RequestInvalid, "the body came too slowly".into())),
            }
        }
    }

    /// A line that is worth an answer.
    fn take(&mut self, line: Vec<u8>) -> Option<Result<Vec<u8>, Refusal>> {
        // Also of an empty one: a number is where an editor has the line.
        self.number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        if self.number > MOST_LINES {
            return Some(self.broken(Code::BodyTooLarge, format!("a batch has at most {MOST_LINES} lines")));
        }
        Some(Ok(line))
    }

    fn broken(&mut self, code: Code, message: String) -> Result<Vec<u8>, Refusal> {
        self.ended = true;
        self.buffer.clear();
        self.chunks = stream::empty().boxed();
        Err(Refusal::new(code, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_however_they_are_cut() {
        let chunks =
            ["{\"a\"", ":1}\n\n", "  \n{\"b\":2}\n{\"c\"", ":3}"].map(|c| Ok::<_, std::io::Error>(Bytes::from(c)));
        let body = Body::from_stream(stream::iter(chunks));
        let read: Vec<_> =
            lines(body).map(|(number, line)| (number, String::from_utf8(line.unwrap()).unwrap())).collect().await;
        let trimmed: Vec<_> = read.iter().map(|(number, line)| (*number, line.trim())).collect();
        assert_eq!(trimmed, [(1, "{\"a\":1}"), (4, "{\"b\":2}"), (5, "{\"c\":3}")]);
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_cut_off() {
        let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 1 << 20]));
        let endless = Body::from_stream(stream::iter((0..1000).map(move |_| chunk())));
        let read: Vec<_> = lines(endless).collect().await;
        assert_eq!(read.len(), 1);
        assert!(read[0].1.is_err());
    }
}
