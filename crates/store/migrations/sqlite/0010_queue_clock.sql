-- The fair order's clock, a row for each worker: the highest key that it has claimed. A maximum over the runs would need
-- an index that every claim changes, and would go back when old runs are removed.
CREATE TABLE queue_clock (
    worker TEXT PRIMARY KEY,
    reached BIGINT NOT NULL
);
INSERT INTO queue_clock (worker, reached) SELECT '', COALESCE(MAX(order_key), 0) FROM runs WHERE attempts > 0;
DROP INDEX runs_claimed;
