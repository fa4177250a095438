use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

const KEEP_BYTES: usize = 8 * 1024;

/// The last words of a process: its error output is read for as long as it lives, or it would stop at a full pipe,
/// and the end of it is kept for messages.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads until the other side ends.
    pub async fn drain(self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&buffer[..read]);
            let excess = kept.len().saturating_sub(KEEP_BYTES);
            kept.drain(..excess);
        }
    }

    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_end_only() {
        let tail = Tail::default();
        let text = format!("first {} last", "x".repeat(3 * KEEP_BYTES));
        tail.clone().drain(text.as_bytes()).await;
        assert!(tail.text().ends_with(" last") && tail.text().len() == KEEP_BYTES);
    }
}
