-- Webhooks of the fleet hear of drift, as a tenant's do.
CREATE TRIGGER drift_moved_in_fleet AFTER UPDATE OF status ON drift
WHEN NEW.status <> OLD.status AND (NEW.status = 'drifted' OR OLD.status = 'drifted' AND NEW.status = 'none')
BEGIN
    INSERT INTO deliveries (webhook, tenant, deployment, run, generation, event, status, next_at, created_at)
    SELECT w.id, NEW.tenant, NEW.name, NEW.run, NEW.generation,
        CASE NEW.status WHEN 'drifted' THEN 'deployment.drifted' ELSE 'deployment.drift_resolved' END, 'pending',
        CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM fleet_webhooks w
    WHERE w.events = ''
        OR instr(w.events, CASE NEW.status WHEN 'drifted' THEN ' drifted ' ELSE ' drift_resolved ' END) > 0;
END;
