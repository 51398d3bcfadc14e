-- What sessions held that were removed: their rows of the ledger, with whose they were.
CREATE TABLE removed_usage (
    session_seq    INTEGER NOT NULL,
    rank           INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    slot           TEXT    NOT NULL,
    resource_group TEXT,
    domain         TEXT    NOT NULL,
    project_id     TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    amount         INTEGER NOT NULL,
    taken_at       INTEGER NOT NULL,
    free_at        INTEGER NOT NULL,
    PRIMARY KEY (session_seq, rank, version, slot)
) WITHOUT ROWID;
CREATE INDEX removed_usage_by_time ON removed_usage (free_at);
CREATE INDEX removed_usage_by_user ON removed_usage (user_id);

CREATE INDEX agent_history_by_time ON agent_history (at);

-- The last time that old rows of an entity were removed.
CREATE TABLE retention_runs (
    entity     TEXT    NOT NULL PRIMARY KEY,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER, -- null = not at its end yet, or cut off
    removed    INTEGER NOT NULL
) WITHOUT ROWID;
