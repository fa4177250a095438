-- A trial makes a plan and changes nothing; a run may replace objects that did not change.
ALTER TABLE runs ADD COLUMN plan_only BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN replaces TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN template TEXT;
-- The plan for people and programs, sealed.
ALTER TABLE runs ADD COLUMN plan_json BLOB;
-- Why a run failed, for those who count.
ALTER TABLE runs ADD COLUMN error_code TEXT GENERATED ALWAYS AS (json_extract(detail, '$.failed.code')) VIRTUAL;
CREATE INDEX runs_by_error ON runs (error_code, id) WHERE error_code IS NOT NULL;

-- Why a deployment's runs wait: 1 itself, 2 its tenant, 4 everything.
ALTER TABLE deployments ADD COLUMN paused BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN paused BIGINT NOT NULL DEFAULT 0;
-- One row: what holds for everything.
CREATE TABLE switches (
    paused BIGINT NOT NULL
);
INSERT INTO switches (paused) VALUES (0);
