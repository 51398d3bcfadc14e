-- Values that programs hand on by name, and what a pipeline's name keeps when its runs are dropped.
ALTER TABLE kernels ADD COLUMN outputs TEXT; -- JSON {"NAME": "VALUE"} of its program; NULL = none
ALTER TABLE pipeline_tasks ADD COLUMN outputs TEXT; -- the same, of the last attempt
ALTER TABLE pipeline_tasks ADD COLUMN inputs TEXT; -- SHA-256 of the values of others that it was given
ALTER TABLE pipelines ADD COLUMN last_run INTEGER NOT NULL DEFAULT 0; -- number, of all versions of the name
UPDATE pipelines SET last_run = COALESCE((SELECT MAX(r.number) FROM pipeline_runs r
    WHERE r.user_id = pipelines.user_id AND r.name = pipelines.name), 0);
