//! What a worker has of memory for its runs, and which part of it is taken.

use std::sync::{Arc, Mutex, PoisonError};

use landform_domain::memory::{Room, UNSEEN};
use tokio::sync::Notify;

pub(crate) struct Memory {
    room: Mutex<Room>,
    freed: Notify,
}

impl Memory {
    pub(crate) fn of(budget: Option<u64>) -> Arc<Memory> {
        let room = Room { budget: budget.unwrap_or(u64::MAX), reserved: 0 };
        Arc::new(Memory { room: Mutex::new(room), freed: Notify::new() })
    }

    pub(crate) fn room(&self) -> Room {
        *self.locked()
    }

    /// What a run is thought to need, until the place is dropped. It was admitted, so it is not asked again.
    pub(crate) fn reserve(self: &Arc<Memory>, known: Option<u64>) -> Place {
        let needs = known.unwrap_or(UNSEEN);
        let mut room = self.locked();
        room.reserved = room.reserved.saturating_add(needs);
        Place { memory: self.clone(), needs }
    }

    /// Somebody has made room since the last call, or does so now.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Place {
    memory: Arc<Memory>,
    needs: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut room = self.memory.locked();
        room.reserved = room.reserved.saturating_sub(self.needs);
        drop(room);
        self.memory.freed.notify_one();
    }
}
