-- Times are milliseconds since 1970 by the database's clock. Inputs, outputs, plans, states, intents and settlements are
-- sealed by the application.

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    hash BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE tenants (
    name TEXT PRIMARY KEY,
    -- Where the tenant's next run starts in the fair order.
    queue_tag BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);

CREATE TABLE tenant_keys (
    tenant TEXT NOT NULL REFERENCES tenants (name),
    number BIGINT NOT NULL,
    sealed BYTEA NOT NULL,
    PRIMARY KEY (tenant, number)
);

CREATE TABLE templates (
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    digest TEXT NOT NULL,
    files BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (name, version)
);

-- A row goes when its destroy has succeeded. Its lock is the lock for all decisions about the deployment and its runs.
CREATE TABLE deployments (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name),
    name TEXT NOT NULL,
    generation BIGINT NOT NULL,
    applied_generation BIGINT,
    -- The generation whose apply last changed the state: what a destroy is made with.
    state_generation BIGINT,
    state_version BIGINT,
    last_state_version BIGINT NOT NULL DEFAULT 0,
    outputs BYTEA,
    -- The fencing token.
    epoch BIGINT NOT NULL DEFAULT 0,
    -- The run that holds the deployment, and its worker's lease while one works on it.
    active_run TEXT,
    lease_worker TEXT,
    lease_until BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (tenant, name)
);
CREATE INDEX deployments_by_lease ON deployments (lease_until) WHERE lease_until IS NOT NULL;

-- Desired states.
CREATE TABLE generations (
    deployment TEXT NOT NULL,
    generation BIGINT NOT NULL,
    kind TEXT NOT NULL,
    template TEXT NOT NULL,
    template_version BIGINT NOT NULL,
    inputs BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    engine TEXT NOT NULL,
    requires_approval BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (deployment, generation)
);

-- Runs stay when their deployment goes, so they repeat its names.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    deployment TEXT NOT NULL,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    generation BIGINT NOT NULL,
    requires_approval BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    detail TEXT NOT NULL,
    claimable BIGINT NOT NULL,
    order_key BIGINT NOT NULL,
    engine TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    last_event BIGINT NOT NULL DEFAULT 0,
    plan BYTEA,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT
);
CREATE INDEX runs_to_claim ON runs (order_key, id) WHERE claimable = 1;
-- The fair order's clock: the highest key that was ever claimed.
CREATE INDEX runs_claimed ON runs (order_key) WHERE attempts > 0;
CREATE INDEX runs_by_deployment ON runs (deployment, id);
CREATE INDEX runs_by_name ON runs (tenant, name, id);
CREATE INDEX runs_by_expiry ON runs (expires_at) WHERE expires_at IS NOT NULL;

-- Numbered per run without gaps, under the deployment's lock: a reader's cursor never misses a late commit.
CREATE TABLE events (
    run TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

-- The journal: open, then settled; closed when a whole state has it or a person has answered.
CREATE TABLE intents (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    deployment TEXT NOT NULL,
    run TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    status TEXT NOT NULL,
    intent BYTEA NOT NULL,
    settlement BYTEA,
    created_at BIGINT NOT NULL
);
CREATE INDEX intents_not_closed ON intents (deployment, id) WHERE status <> 'closed';

CREATE TABLE states (
    deployment TEXT NOT NULL,
    version BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    run TEXT NOT NULL,
    state BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (deployment, version)
);

-- Objects that somebody found after a crash and that the next plan imports.
CREATE TABLE adoptions (
    deployment TEXT NOT NULL,
    address TEXT NOT NULL,
    object_id TEXT NOT NULL,
    PRIMARY KEY (deployment, address)
);

CREATE TABLE idempotency_keys (
    principal TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    body BYTEA NOT NULL,
    run TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (principal, route, key)
);
