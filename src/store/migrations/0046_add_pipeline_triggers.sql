-- Pipelines that are run by the clock, and after runs of other pipelines.
CREATE TABLE pipeline_switches (
    user_id    TEXT    NOT NULL REFERENCES users (id),
    name       TEXT    NOT NULL, -- of the pipeline, whichever its versions
    is_enabled INTEGER NOT NULL,
    reason     TEXT,             -- why the manager disabled it; null = its user did
    access_key TEXT    NOT NULL, -- on whose behalf runs are made
    options    TEXT    NOT NULL, -- of runs, JSON
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, name)
) WITHOUT ROWID;

-- Those of the latest version of each pipeline.
CREATE TABLE pipeline_triggers (
    id          TEXT    NOT NULL PRIMARY KEY,
    user_id     TEXT    NOT NULL REFERENCES users (id),
    name        TEXT    NOT NULL,
    place       INTEGER NOT NULL, -- in the file
    cron        TEXT,             -- null = not a schedule
    zone        TEXT,
    after_name  TEXT,             -- the other pipeline; null = a schedule
    ends        TEXT,
    overlap     TEXT    NOT NULL,
    missed      TEXT    NOT NULL,
    checked_at  INTEGER NOT NULL, -- due times until then have been handled
    next_at     INTEGER,          -- null = disabled, or not a schedule
    last_at     INTEGER,          -- when it was handled last
    last_result TEXT,
    UNIQUE (user_id, name, place)
);
CREATE INDEX pipeline_triggers_due ON pipeline_triggers (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX pipeline_triggers_after ON pipeline_triggers (user_id, after_name)
    WHERE after_name IS NOT NULL;

ALTER TABLE pipeline_runs ADD COLUMN started_by TEXT; -- null = a request
ALTER TABLE pipeline_runs ADD COLUMN due_at INTEGER;
ALTER TABLE pipeline_runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0; -- runs whose ends led to it
ALTER TABLE pipeline_runs ADD COLUMN follow_at INTEGER; -- it ended, and triggers of that wait
CREATE INDEX pipeline_runs_follow ON pipeline_runs (follow_at) WHERE follow_at IS NOT NULL;
