-- A tenant that is gone: its runs, the audit log and its keys stay, and its name can come back.
ALTER TABLE tenants ADD COLUMN deleted_at BIGINT;
