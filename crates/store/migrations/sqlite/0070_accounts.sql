-- Which worker owns a vendor's account: its process keeps the account's budget. Another may have it when the lease has
-- run out.
CREATE TABLE accounts (
    key TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    lease_until BIGINT NOT NULL
);
CREATE INDEX accounts_by_worker ON accounts (worker);
CREATE INDEX accounts_by_lease ON accounts (lease_until);

-- Two more reasons to wait: claimable is 4 when only one worker may take the run, 5 when nobody may before a time.
ALTER TABLE runs ADD COLUMN bound_worker TEXT;
ALTER TABLE runs ADD COLUMN not_before BIGINT;
ALTER TABLE runs ADD COLUMN blocked_by TEXT;
CREATE INDEX runs_bound ON runs (bound_worker, order_key, id) WHERE claimable = 4;
CREATE INDEX runs_not_before ON runs (not_before) WHERE claimable = 5;
