-- What a run waits for: claimable is 0 when nobody may take it, 1 when it is due, 2 when its deployment is held or paused,
-- 3 when its tenant has no slot left. Only what is due is looked at by a claim, so what waits costs it nothing.
ALTER TABLE deployments ADD COLUMN parked BIGINT NOT NULL DEFAULT 0;
CREATE INDEX deployments_parked ON deployments (tenant, name) WHERE parked = 1;

-- What a tenant may have at most; null is no limit.
ALTER TABLE tenants ADD COLUMN slots BIGINT;
ALTER TABLE tenants ADD COLUMN most_deployments BIGINT;
ALTER TABLE tenants ADD COLUMN most_waiting BIGINT;
CREATE INDEX deployments_under_way ON deployments (tenant) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_waiting ON runs (tenant, order_key, id) WHERE claimable <> 0;
