-- Who wants to be told about everybody's runs. As `webhooks`, but the secret is sealed with the installation's key.
CREATE TABLE fleet_webhooks (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE FUNCTION run_moved_in_fleet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.id, NEW.generation, 'run.' || NEW.status, 'pending',
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT),
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)
    FROM fleet_webhooks w WHERE w.events = '' OR position(' ' || NEW.status || ' ' IN w.events) > 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER run_moved_in_fleet AFTER UPDATE OF status ON runs
    FOR EACH ROW WHEN (NEW.status <> OLD.status) EXECUTE FUNCTION run_moved_in_fleet();
