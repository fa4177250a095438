-- What all states have, without any of their values: written by the transaction that writes the state.
CREATE TABLE resources (
    tenant TEXT NOT NULL,
    deployment TEXT NOT NULL,
    address TEXT NOT NULL,
    -- managed or data
    mode TEXT NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    -- The attribute `id`, unless it is sensitive.
    object_id TEXT,
    -- A keyed hash of the whole object: it says that something changed, and nothing else.
    digest TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, deployment, address)
);
CREATE INDEX resources_by_type ON resources (type, tenant, deployment, address);
CREATE INDEX resources_by_id ON resources (object_id, tenant, deployment, address) WHERE object_id IS NOT NULL;

-- For people and programs that ask with SQL: docs/operations.md.
CREATE VIEW inventory AS
    SELECT tenant, deployment, address, mode, type, name, provider, object_id AS id, updated_at FROM resources;
