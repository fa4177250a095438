use std::io;
use std::path::Path;

use landform_base::file::{self, FileLock};
use landform_store::WorkerId;

/// A worker's stable name: a file in its folder, held by a lock. Who holds it knows that its earlier life is over, and
/// may void the leases of that life at once.
pub(crate) struct Identity {
    pub(crate) id: WorkerId,
    _lock: FileLock,
}

impl Identity {
    /// `Ok(None)` when another process has it.
    pub(crate) fn acquire(folder: &Path) -> io::Result<Option<Identity>> {
        let Some(lock) = FileLock::try_acquire(&folder.join("worker.lock"))? else { return Ok(None) };
        let path = folder.join("worker.id");
        match file::create_private(&path, uuid::Uuid::new_v4().to_string().as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let id = std::fs::read_to_string(&path)?;
        Ok(Some(Identity { id: WorkerId::new(id.trim()), _lock: lock }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_stable_and_held_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let first = Identity::acquire(folder.path()).unwrap().expect("free");
        assert!(Identity::acquire(folder.path()).unwrap().is_none());
        let id = first.id.clone();
        drop(first);
        assert_eq!(Identity::acquire(folder.path()).unwrap().expect("free again").id, id);
    }
}
