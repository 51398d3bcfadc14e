CREATE TABLE sessions (
    seq               INTEGER NOT NULL PRIMARY KEY, -- creation order
    id                TEXT    NOT NULL UNIQUE,
    name              TEXT    NOT NULL,
    type              TEXT    NOT NULL,
    status            TEXT    NOT NULL,
    version           INTEGER NOT NULL,
    result            TEXT    NOT NULL,
    priority          INTEGER NOT NULL,
    user_id           TEXT    NOT NULL REFERENCES users (id),
    project_id        TEXT    NOT NULL REFERENCES projects (id),
    access_key        TEXT    NOT NULL,
    domain            TEXT    NOT NULL REFERENCES domains (name),
    resource_group    TEXT,
    kernel_count      INTEGER NOT NULL,
    image             TEXT, -- this and the next two: copies from spec, to filter by
    tag               TEXT,
    cluster_mode      TEXT,
    spec              TEXT,
    reason            TEXT,
    status_data       TEXT,
    forced            INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    status_changed_at INTEGER NOT NULL,
    starts_at         INTEGER,
    running_at        INTEGER,
    terminated_at     INTEGER, -- null as long as it lives
    batch_timeout     INTEGER NOT NULL
);
CREATE UNIQUE INDEX sessions_live_name ON sessions (user_id, name) WHERE terminated_at IS NULL;
CREATE INDEX sessions_by_name ON sessions (name);
CREATE INDEX sessions_changed ON sessions (status_changed_at);
CREATE INDEX sessions_owner_changed ON sessions (user_id, status_changed_at);

CREATE TABLE session_dependencies (
    session_seq INTEGER NOT NULL REFERENCES sessions (seq),
    depends_on  TEXT    NOT NULL REFERENCES sessions (id),
    PRIMARY KEY (session_seq, depends_on)
) WITHOUT ROWID;
CREATE INDEX session_dependencies_back ON session_dependencies (depends_on);

CREATE TABLE kernels (
    session_seq       INTEGER NOT NULL REFERENCES sessions (seq),
    rank              INTEGER NOT NULL,
    id                TEXT    NOT NULL UNIQUE,
    role              TEXT    NOT NULL,
    role_index        INTEGER NOT NULL,
    status            TEXT    NOT NULL,
    version           INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    agent_id          TEXT,
    requested         TEXT    NOT NULL,
    alloc             TEXT,
    exit_code         INTEGER,
    reason            TEXT,
    status_changed_at INTEGER NOT NULL,
    terminated_at     INTEGER,
    PRIMARY KEY (session_seq, rank)
) WITHOUT ROWID;

-- The one ledger: who holds or held what, where and how long. A row is live
-- while free_at is null.
CREATE TABLE allocations (
    session_seq INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    version     INTEGER NOT NULL, -- of the kernel when it took hold
    slot        TEXT    NOT NULL,
    agent_id    TEXT    NOT NULL,
    amount      INTEGER NOT NULL CHECK (amount > 0),
    taken_at    INTEGER NOT NULL,
    free_at     INTEGER,
    PRIMARY KEY (session_seq, rank, version, slot),
    FOREIGN KEY (session_seq, rank) REFERENCES kernels (session_seq, rank)
) WITHOUT ROWID;
CREATE INDEX allocations_live ON allocations (agent_id) WHERE free_at IS NULL;

-- Every status change; rank -1 is the session itself.
CREATE TABLE session_history (
    session_seq INTEGER NOT NULL REFERENCES sessions (seq),
    rank        INTEGER NOT NULL,
    version     INTEGER NOT NULL, -- after the change
    at          INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    reason      TEXT,
    PRIMARY KEY (session_seq, rank, version)
) WITHOUT ROWID;
