use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::time::timeout;

const KEEP_BYTES: usize = 8 * 1024;

/// How long the last words of a process that has ended may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The last words of a process: its error output is read for as long as it lives, or it would stop at a full pipe,
/// and the end of it is kept for messages.
#[derive(Clone, Debug)]
pub struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    complete: watch::Receiver<bool>,
}

impl Tail {
    /// Reads in the background until the other side ends.
    pub fn of(mut from: impl AsyncRead + Unpin + Send + 'static) -> Tail {
        let (done, complete) = watch::channel(false);
        let tail = Tail { kept: Arc::default(), complete };
        let kept = tail.kept.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..read]);
                let excess = kept.len().saturating_sub(KEEP_BYTES);
                kept.drain(..excess);
            }
            done.send_replace(true);
        });
        tail
    }

    /// What a process that has ended said last: its output may arrive after the news of its end.
    pub async fn last_words(&self) -> String {
        let mut complete = self.complete.clone();
        let _ = timeout(LAST_WORDS, complete.wait_for(|complete| *complete)).await;
        self.text()
    }

    /// What was said so far.
    pub fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_end_only() {
        let text = format!("first {} last", "x".repeat(3 * KEEP_BYTES));
        let tail = Tail::of(std::io::Cursor::new(text.into_bytes()));
        let words = tail.last_words().await;
        assert!(words.ends_with(" last") && words.len() == KEEP_BYTES);
    }
}
