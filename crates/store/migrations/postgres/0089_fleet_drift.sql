-- Webhooks of the fleet hear of drift, as a tenant's do.
CREATE FUNCTION drift_moved_in_fleet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.run, NEW.generation,
        CASE NEW.status WHEN 'drifted' THEN 'deployment.drifted' ELSE 'deployment.drift_resolved' END, 'pending',
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT),
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)
    FROM fleet_webhooks w
    WHERE w.events = ''
        OR position(CASE NEW.status WHEN 'drifted' THEN ' drifted ' ELSE ' drift_resolved ' END IN w.events) > 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER drift_moved_in_fleet AFTER UPDATE OF status ON drift
    FOR EACH ROW WHEN (NEW.status <> OLD.status
        AND (NEW.status = 'drifted' OR OLD.status = 'drifted' AND NEW.status = 'none'))
    EXECUTE FUNCTION drift_moved_in_fleet();
