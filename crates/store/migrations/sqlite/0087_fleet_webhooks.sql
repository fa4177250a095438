-- Who wants to be told about everybody's runs. As `webhooks`, but the secret is sealed with the installation's key.
CREATE TABLE fleet_webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret BLOB NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TRIGGER run_moved_in_fleet AFTER UPDATE OF status ON runs WHEN NEW.status <> OLD.status
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.id, NEW.generation, 'run.' || NEW.status, 'pending',
        CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM fleet_webhooks w WHERE w.events = '' OR instr(w.events, ' ' || NEW.status || ' ') > 0;
END;
