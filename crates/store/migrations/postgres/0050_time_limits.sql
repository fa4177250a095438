-- Seconds that an attempt may take; null: as the worker has it.
ALTER TABLE generations ADD COLUMN time_limit BIGINT;
