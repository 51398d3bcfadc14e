-- Model services: what is served by replicas, which are sessions, and who may ask.
CREATE TABLE model_services (
    id             TEXT    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    version        INTEGER NOT NULL,
    user_id        TEXT    NOT NULL REFERENCES users (id),
    project_id     TEXT    NOT NULL REFERENCES projects (id),
    access_key     TEXT    NOT NULL,
    domain         TEXT    NOT NULL REFERENCES domains (name),
    resource_group TEXT,
    tag            TEXT,
    is_public      INTEGER NOT NULL,
    replicas       INTEGER NOT NULL, -- wanted now
    replicas_min   INTEGER NOT NULL,
    replicas_max   INTEGER NOT NULL,
    goal           INTEGER NOT NULL, -- number of the revision that is wanted
    last_number    INTEGER NOT NULL, -- of the newest revision
    last_replica   INTEGER NOT NULL, -- highest number of a replica so far
    limits         TEXT    NOT NULL, -- JSON
    scaling        TEXT,             -- JSON
    rollout        TEXT,             -- JSON
    created_at     INTEGER NOT NULL,
    is_ending      INTEGER NOT NULL,
    is_forced      INTEGER NOT NULL,
    ended_at       INTEGER           -- null as long as it has replicas or may get some
);
CREATE UNIQUE INDEX model_services_live_name ON model_services (lower(name)) WHERE ended_at IS NULL;
CREATE INDEX model_services_ended ON model_services (ended_at);
CREATE INDEX model_services_of_user ON model_services (user_id);

CREATE TABLE model_service_revisions (
    service_id TEXT    NOT NULL REFERENCES model_services (id),
    number     INTEGER NOT NULL,
    spec       TEXT    NOT NULL, -- JSON
    note       TEXT,
    creator_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (service_id, number)
);

CREATE TABLE model_service_tokens (
    id         TEXT    NOT NULL PRIMARY KEY,
    service_id TEXT    NOT NULL REFERENCES model_services (id),
    hash       TEXT    NOT NULL, -- SHA-256 of the token, which is not kept
    label      TEXT,
    paths      TEXT    NOT NULL, -- JSON
    expires_at INTEGER,
    rate       INTEGER NOT NULL, -- thousandths of requests a second; 0 = no limit
    budget     INTEGER NOT NULL, -- 0 = no limit
    used       INTEGER NOT NULL, -- of the budget
    requests   INTEGER NOT NULL,
    creator_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER
);
CREATE INDEX model_service_tokens_of ON model_service_tokens (service_id);

-- How many replicas were wanted, of which revision.
CREATE TABLE model_service_history (
    service_id TEXT    NOT NULL REFERENCES model_services (id),
    version    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    replicas   INTEGER NOT NULL,
    goal       INTEGER NOT NULL,
    reason     TEXT,
    PRIMARY KEY (service_id, version)
);

-- A session that is a replica.
ALTER TABLE sessions ADD COLUMN service_id TEXT;
ALTER TABLE sessions ADD COLUMN service_revision INTEGER;
ALTER TABLE sessions ADD COLUMN replica_number INTEGER;
ALTER TABLE sessions ADD COLUMN ratio_ppm INTEGER;   -- traffic ratio, millionths
ALTER TABLE sessions ADD COLUMN ready_at INTEGER;    -- since when it takes requests
ALTER TABLE sessions ADD COLUMN draining_at INTEGER; -- since when it takes no new ones
CREATE INDEX sessions_of_service ON sessions (service_id) WHERE service_id IS NOT NULL;
