-- What is known of a deployment's drift, and how often somebody looks. `objects` is sealed.
CREATE TABLE drift (
    deployment TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    -- unknown, none or drifted
    status TEXT NOT NULL,
    -- The run that found this, or that brought things to order; its generation, and when.
    run TEXT,
    generation BIGINT,
    checked_at BIGINT,
    drifted_since BIGINT,
    changed BIGINT NOT NULL DEFAULT 0,
    gone BIGINT NOT NULL DEFAULT 0,
    objects BLOB,
    -- A check that failed since, which leaves the fact as it was.
    failed_run TEXT,
    failed_code TEXT,
    failed_at BIGINT,
    -- Seconds between two checks; null is no schedule.
    every BIGINT,
    next_at BIGINT
);
CREATE INDEX drift_by_status ON drift (status, tenant, name);
CREATE INDEX drift_due ON drift (next_at) WHERE next_at IS NOT NULL;

-- The objects that drifted, without any of their values: what many deployments share has one cause.
CREATE TABLE drift_objects (
    deployment TEXT NOT NULL,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    template TEXT NOT NULL,
    address TEXT NOT NULL,
    type TEXT NOT NULL,
    gone BIGINT NOT NULL,
    -- Names of attributes between blanks.
    attributes TEXT NOT NULL,
    PRIMARY KEY (deployment, address)
);

-- So that an apply looks at the table only where there is something to clear.
ALTER TABLE deployments ADD COLUMN drifted BIGINT NOT NULL DEFAULT 0;

CREATE INDEX runs_checking ON runs (deployment) WHERE kind = 'check' AND ended_at IS NULL;

-- A drift check is no change, so nobody is told of its moves, whoever would tell; what it finds is told.
CREATE TRIGGER checks_are_not_told AFTER INSERT ON deliveries
WHEN NEW.event LIKE 'run.%' AND EXISTS (SELECT 1 FROM runs r WHERE r.id = NEW.run AND r.kind = 'check')
BEGIN
    DELETE FROM deliveries WHERE id = NEW.id;
END;

CREATE TRIGGER drift_moved AFTER UPDATE OF status ON drift
WHEN NEW.status <> OLD.status AND (NEW.status = 'drifted' OR OLD.status = 'drifted' AND NEW.status = 'none')
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.run, NEW.generation,
        CASE NEW.status WHEN 'drifted' THEN 'deployment.drifted' ELSE 'deployment.drift_resolved' END, 'pending',
        CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM webhooks w
    WHERE w.tenant = NEW.tenant AND (w.events = ''
        OR instr(w.events, CASE NEW.status WHEN 'drifted' THEN ' drifted ' ELSE ' drift_resolved ' END) > 0);
END;
