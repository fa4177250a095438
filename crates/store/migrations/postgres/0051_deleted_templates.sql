-- A version that is gone: its files are, and its number is never given again.
ALTER TABLE templates ADD COLUMN deleted_at BIGINT;
