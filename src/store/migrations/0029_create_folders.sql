-- Folders of users and projects, whom they are shared with, and who is offered them. Their files
-- are on a host; counts are of the last time that they were counted.
CREATE TABLE folders (
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL,
    host         TEXT    NOT NULL,
    user_id      TEXT    REFERENCES users (id),
    project_id   TEXT    REFERENCES projects (id),
    usage_mode   TEXT    NOT NULL CHECK (usage_mode IN ('general', 'model', 'data')),
    permission   TEXT    NOT NULL CHECK (permission IN ('ro', 'rw', 'wd')),
    is_cloneable INTEGER NOT NULL,
    status       TEXT    NOT NULL,
    creator      TEXT    NOT NULL, -- e-mail
    created_at   INTEGER NOT NULL,
    used_at      INTEGER,
    files        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    bytes_max    INTEGER NOT NULL, -- 0 = no limit of its own
    CHECK ((user_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX folders_by_user ON folders (user_id);
CREATE INDEX folders_by_project ON folders (project_id);
CREATE INDEX folders_by_name ON folders (name);
CREATE INDEX folders_by_status ON folders (status);

CREATE TABLE folder_shares (
    folder_id  TEXT    NOT NULL REFERENCES folders (id),
    user_id    TEXT    NOT NULL REFERENCES users (id),
    permission TEXT    NOT NULL CHECK (permission IN ('ro', 'rw', 'wd')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (folder_id, user_id)
);
CREATE INDEX folder_shares_by_user ON folder_shares (user_id);

CREATE TABLE folder_invitations (
    id         TEXT    NOT NULL PRIMARY KEY,
    folder_id  TEXT    NOT NULL REFERENCES folders (id),
    inviter_id TEXT    NOT NULL REFERENCES users (id),
    user_id    TEXT    NOT NULL REFERENCES users (id),
    permission TEXT    NOT NULL CHECK (permission IN ('ro', 'rw', 'wd')),
    created_at INTEGER NOT NULL,
    UNIQUE (folder_id, user_id)
);
CREATE INDEX folder_invitations_by_user ON folder_invitations (user_id);
