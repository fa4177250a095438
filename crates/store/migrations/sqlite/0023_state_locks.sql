-- Locks of outside clients on a state. While there is one, the deployment's active_run is the word 'lock', so that no run
-- of it is claimed.
CREATE TABLE state_locks (
    deployment TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    info TEXT NOT NULL,
    actor TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
