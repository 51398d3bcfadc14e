CREATE TABLE agents (
    id                TEXT    NOT NULL PRIMARY KEY,
    status            TEXT    NOT NULL,
    incarnation       TEXT    NOT NULL,
    resource_group    TEXT    NOT NULL,
    architecture      TEXT,
    version           TEXT,
    addr              TEXT,
    region            TEXT,
    schedulable       INTEGER NOT NULL,
    drain_reason      TEXT,
    available         TEXT    NOT NULL,
    devices           TEXT,
    first_contact_at  INTEGER,
    status_changed_at INTEGER,
    lost_at           INTEGER
);

CREATE TABLE agent_history (
    agent_id TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    status   TEXT    NOT NULL,
    reason   TEXT
);
CREATE INDEX agent_history_by_agent ON agent_history (agent_id, at);

-- A token is kept as its SHA-256.
CREATE TABLE join_tokens (
    hash       BLOB    NOT NULL PRIMARY KEY,
    agent_id   TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER,
    used_by    TEXT
);

CREATE TABLE agent_certs (
    serial     TEXT    NOT NULL PRIMARY KEY,
    agent_id   TEXT    NOT NULL,
    issued_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER
);
CREATE INDEX agent_certs_by_agent ON agent_certs (agent_id);
