-- Who wants to be told about a tenant's runs. The secret that signs is sealed; `events` is a list of words between blanks,
-- or empty for all.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name),
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret BLOB NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_tenant ON webhooks (tenant);

CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook TEXT NOT NULL,
    tenant TEXT NOT NULL,
    deployment TEXT NOT NULL,
    run TEXT NOT NULL,
    generation BIGINT NOT NULL,
    event TEXT NOT NULL,
    -- pending, delivered or given_up
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,
    next_at BIGINT NOT NULL,
    answer BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE status = 'pending';
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, id);

-- A delivery is made by the very transaction that moves the run, whoever moves it.
CREATE TRIGGER run_moved AFTER UPDATE OF status ON runs WHEN NEW.status <> OLD.status
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.id, NEW.generation, 'run.' || NEW.status, 'pending',
        CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM webhooks w
    WHERE w.tenant = NEW.tenant AND (w.events = '' OR instr(w.events, ' ' || NEW.status || ' ') > 0);
END;
