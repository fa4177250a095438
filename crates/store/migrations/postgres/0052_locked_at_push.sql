-- The digest of the files as they were pushed; `digest` is with the lock file that was made for them.
ALTER TABLE templates ADD COLUMN pushed TEXT;
