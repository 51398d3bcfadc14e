-- Domains, projects, users, keypairs, policies, resource groups.
-- Amounts of slots are JSON objects of integers: bytes, else millionths.
-- Times are microseconds since 1970.
CREATE TABLE settings (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE slot_types (
    name TEXT NOT NULL PRIMARY KEY,
    type TEXT NOT NULL CHECK (type IN ('count', 'bytes', 'unique', 'unified'))
) WITHOUT ROWID;

CREATE TABLE domains (
    name        TEXT    NOT NULL PRIMARY KEY,
    description TEXT,
    is_active   INTEGER NOT NULL,
    total_slots TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
);

CREATE TABLE projects (
    id          TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    domain      TEXT    NOT NULL REFERENCES domains (name),
    description TEXT,
    is_active   INTEGER NOT NULL,
    total_slots TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    UNIQUE (domain, name)
);

CREATE TABLE keypair_policies (
    name                       TEXT    NOT NULL PRIMARY KEY,
    unlimited_unspecified      INTEGER NOT NULL,
    total_slots                TEXT    NOT NULL,
    max_session_lifetime_sec   INTEGER NOT NULL,
    idle_timeout_sec           INTEGER NOT NULL,
    max_concurrent_sessions    INTEGER NOT NULL,
    max_containers_per_session INTEGER NOT NULL,
    max_pending_sessions       INTEGER NOT NULL,
    max_priority               INTEGER NOT NULL,
    created_at                 INTEGER NOT NULL
);

CREATE TABLE resource_groups (
    name              TEXT    NOT NULL PRIMARY KEY,
    description       TEXT,
    is_active         INTEGER NOT NULL,
    scheduler         TEXT    NOT NULL,
    scheduler_opts    TEXT,
    driver_opts       TEXT,
    pending_timeout   INTEGER NOT NULL, -- microseconds, 0 = none
    selection         TEXT    NOT NULL,
    agent_loss_policy TEXT    NOT NULL,
    agent_loss_grace  INTEGER NOT NULL, -- microseconds
    created_at        INTEGER NOT NULL
);

CREATE TABLE users (
    id            TEXT    NOT NULL PRIMARY KEY,
    username      TEXT    NOT NULL UNIQUE,
    email         TEXT    NOT NULL UNIQUE,
    full_name     TEXT,
    domain        TEXT    REFERENCES domains (name),
    role          TEXT    NOT NULL CHECK (role IN ('superadmin', 'admin', 'user', 'monitor')),
    status        TEXT    NOT NULL,
    password_hash TEXT,
    created_at    INTEGER NOT NULL,
    modified_at   INTEGER NOT NULL
);

CREATE TABLE memberships (
    user_id    TEXT NOT NULL REFERENCES users (id),
    project_id TEXT NOT NULL REFERENCES projects (id),
    PRIMARY KEY (user_id, project_id)
) WITHOUT ROWID;

CREATE TABLE keypairs (
    access_key  TEXT    NOT NULL PRIMARY KEY,
    secret      BLOB    NOT NULL, -- sealed
    user_id     TEXT    NOT NULL REFERENCES users (id),
    is_active   INTEGER NOT NULL,
    is_admin    INTEGER NOT NULL,
    policy      TEXT    NOT NULL REFERENCES keypair_policies (name),
    rate_limit  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
);
CREATE INDEX keypairs_by_user ON keypairs (user_id);

-- Who may use a resource group: a domain (name), a project (id) or a keypair.
-- Columns in the order of the key: else quick_check of SQLite 3.40 finds NULLs.
CREATE TABLE resource_group_access (
    kind           TEXT NOT NULL CHECK (kind IN ('domain', 'project', 'keypair')),
    whom           TEXT NOT NULL,
    resource_group TEXT NOT NULL REFERENCES resource_groups (name),
    PRIMARY KEY (kind, whom, resource_group)
) WITHOUT ROWID;
