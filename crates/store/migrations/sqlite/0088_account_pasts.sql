-- What was called at an account, for whoever owns it next: as `writer` wrote it. It is whole if the last owner gave the
-- account up; one that died may have called since.
CREATE TABLE account_pasts (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    writer TEXT NOT NULL,
    calls TEXT NOT NULL,
    is_whole BIGINT NOT NULL,
    written_at BIGINT NOT NULL
);
CREATE INDEX account_pasts_by_time ON account_pasts (written_at);
