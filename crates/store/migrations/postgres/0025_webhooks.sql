-- Who wants to be told about a tenant's runs. The secret that signs is sealed; `events` is a list of words between blanks,
-- or empty for all.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name),
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_tenant ON webhooks (tenant);

CREATE TABLE deliveries (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
CREATE FUNCTION run_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.id, NEW.generation, 'run.' || NEW.status, 'pending',
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT),
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)
    FROM webhooks w
    WHERE w.tenant = NEW.tenant AND (w.events = '' OR position(' ' || NEW.status || ' ' IN w.events) > 0);
    RETURN NULL;
END
$$;
CREATE TRIGGER run_moved AFTER UPDATE OF status ON runs
    FOR EACH ROW WHEN (NEW.status <> OLD.status) EXECUTE FUNCTION run_moved();
