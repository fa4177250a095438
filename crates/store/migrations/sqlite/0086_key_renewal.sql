-- How many values a data key has sealed, as far as that was counted; and from when on it seals: until then every process
-- has time to hear of it.
ALTER TABLE tenant_keys ADD COLUMN uses BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenant_keys ADD COLUMN usable_at BIGINT NOT NULL DEFAULT 0;

-- The key of what belongs to no tenant.
CREATE TABLE installation_keys (
    number BIGINT PRIMARY KEY,
    sealed BLOB NOT NULL
);
