-- Files of pipelines under their names: a version for each content.
CREATE TABLE pipelines (
    id       TEXT    NOT NULL PRIMARY KEY,
    user_id  TEXT    NOT NULL REFERENCES users (id),
    name     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    hash     TEXT    NOT NULL, -- SHA-256 of the text
    text     TEXT    NOT NULL,
    saved_at INTEGER NOT NULL, -- the latest is what the name means
    UNIQUE (user_id, name, version),
    UNIQUE (user_id, name, hash)
);

CREATE TABLE pipeline_runs (
    id           TEXT    NOT NULL PRIMARY KEY,
    pipeline_id  TEXT    NOT NULL REFERENCES pipelines (id), -- the version that it runs
    user_id      TEXT    NOT NULL REFERENCES users (id),
    access_key   TEXT    NOT NULL, -- on whose behalf sessions are made
    name         TEXT    NOT NULL, -- of the pipeline
    number       INTEGER NOT NULL, -- of the user's runs of this name
    state        TEXT    NOT NULL CHECK (state IN ('running', 'succeeded', 'failed', 'cancelled')),
    is_cancelled INTEGER NOT NULL, -- it is to end
    parameters   TEXT    NOT NULL, -- JSON
    options      TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    UNIQUE (user_id, name, number)
);
CREATE INDEX pipeline_runs_live ON pipeline_runs (state) WHERE ended_at IS NULL;
CREATE INDEX pipeline_runs_by_pipeline ON pipeline_runs (pipeline_id);

CREATE TABLE pipeline_tasks (
    run_id      TEXT    NOT NULL REFERENCES pipeline_runs (id),
    place       INTEGER NOT NULL, -- in the file, with matrices
    name        TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK
        (state IN ('waiting', 'running', 'succeeded', 'failed', 'skipped', 'cancelled')),
    attempt     INTEGER NOT NULL, -- the present one, or the next one while it waits
    attempt_max INTEGER NOT NULL,
    session_id  TEXT,             -- of the last attempt
    reason      TEXT,
    identity    TEXT    NOT NULL, -- SHA-256 of what it does, and of what it needs
    started_at  INTEGER,
    ended_at    INTEGER,
    PRIMARY KEY (run_id, place)
) WITHOUT ROWID;
CREATE INDEX pipeline_tasks_same ON pipeline_tasks (identity) WHERE state = 'succeeded';
