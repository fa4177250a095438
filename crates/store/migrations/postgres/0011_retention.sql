-- What has ended, in the order in which it may go.
CREATE INDEX runs_by_end ON runs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Lists of one tenant's runs and of all runs with one status; lists of one deployment's have runs_by_name.
CREATE INDEX runs_by_tenant ON runs (tenant, id);
CREATE INDEX runs_by_status ON runs (status, id);

-- A journal entry now goes when it is closed.
DELETE FROM intents WHERE status = 'closed';
