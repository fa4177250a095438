-- A token may be bound to one tenant, may end, and may be withdrawn; a withdrawn one stays, for the audit log names it.
ALTER TABLE tokens ADD COLUMN tenant TEXT REFERENCES tenants (name);
ALTER TABLE tokens ADD COLUMN created_by TEXT;
ALTER TABLE tokens ADD COLUMN expires_at BIGINT;
ALTER TABLE tokens ADD COLUMN revoked_at BIGINT;

-- Whether whoever asked for a change may also approve it.
ALTER TABLE tenants ADD COLUMN separate_approver BIGINT NOT NULL DEFAULT 0;

-- The token that asked for the run.
ALTER TABLE runs ADD COLUMN author TEXT;
ALTER TABLE runs ADD COLUMN author_name TEXT;

-- Who did what, from where. A row is written in the transaction of the deed and never changes.
CREATE TABLE audit (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    tenant TEXT,
    target TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_by_tenant ON audit (tenant, seq);
CREATE INDEX audit_by_actor ON audit (actor, seq);
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
