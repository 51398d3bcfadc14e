-- Arrays: sessions that are alike but for an index, and are made when they can start soon.
CREATE TABLE arrays (
    seq            INTEGER NOT NULL PRIMARY KEY, -- creation order among sessions and arrays
    id             TEXT    NOT NULL UNIQUE,
    name           TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    user_id        TEXT    NOT NULL,
    project_id     TEXT    NOT NULL,
    access_key     TEXT    NOT NULL,
    domain         TEXT    NOT NULL,
    resource_group TEXT    NOT NULL,
    type           TEXT    NOT NULL, -- of each element, as in sessions, and the next four
    priority       INTEGER NOT NULL,
    image          TEXT,
    tag            TEXT,
    spec           TEXT    NOT NULL,
    element        TEXT    NOT NULL, -- JSON of the rest
    depends_on     TEXT,             -- ids of sessions that elements wait for; null = none, or met
    indices        TEXT    NOT NULL, -- as 0-15:4,20
    removed        TEXT,             -- of these, what was cancelled before it was made
    size           INTEGER NOT NULL, -- how many indices
    run_limit      INTEGER NOT NULL, -- elements that live at once; 0 = any number
    next_position  INTEGER NOT NULL, -- of the indices, those from there on are not made
    made           INTEGER NOT NULL,
    skipped        INTEGER NOT NULL, -- that are never made
    succeeded      INTEGER NOT NULL, -- of those made
    failed         INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    cancelled_at   INTEGER,
    ended_at       INTEGER           -- null as long as it lives
);
CREATE UNIQUE INDEX arrays_live_name ON arrays (user_id, name) WHERE ended_at IS NULL;
CREATE INDEX arrays_of_user ON arrays (user_id, seq);
CREATE INDEX arrays_ended ON arrays (ended_at);

-- Of an element.
ALTER TABLE sessions ADD COLUMN array_id TEXT;
ALTER TABLE sessions ADD COLUMN array_index INTEGER;
CREATE UNIQUE INDEX sessions_of_array ON sessions (array_id, array_index)
    WHERE array_id IS NOT NULL;
