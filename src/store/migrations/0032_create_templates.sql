-- Templates of sessions and of clusters of them: of a user, and of a project's members where it is
-- shared.
CREATE TABLE session_templates (
    id          TEXT    NOT NULL PRIMARY KEY,
    kind        TEXT    NOT NULL CHECK (kind IN ('session', 'cluster')),
    name        TEXT    NOT NULL,
    user_id     TEXT    NOT NULL REFERENCES users (id),
    project_id  TEXT    REFERENCES projects (id),
    domain      TEXT    NOT NULL,
    text        TEXT    NOT NULL, -- as it was given
    parsed      TEXT    NOT NULL, -- JSON
    created_at  INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    UNIQUE (user_id, name)
);
CREATE INDEX session_templates_by_project ON session_templates (project_id);
