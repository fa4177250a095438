-- Whether the adoption answers a doubt: then an object that the state still has at that address was being replaced.
ALTER TABLE adoptions ADD COLUMN after_doubt BIGINT NOT NULL DEFAULT 0;
