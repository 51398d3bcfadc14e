-- How many sessions that have ended there are of each kind: what a total is counted from. A row
-- changes with the sessions, in the same transaction.
CREATE TABLE session_totals (
    domain         TEXT    NOT NULL,
    project_id     TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    access_key     TEXT    NOT NULL,
    resource_group TEXT,
    type           TEXT    NOT NULL,
    status         TEXT    NOT NULL,
    result         TEXT    NOT NULL,
    image          TEXT,
    cluster_mode   TEXT,
    sessions       INTEGER NOT NULL
);
-- A null is a value, too: only texts get a '='.
CREATE UNIQUE INDEX session_totals_key ON session_totals (user_id, status, result, type, access_key,
    project_id, domain, COALESCE('=' || resource_group, ''), COALESCE('=' || image, ''),
    COALESCE('=' || cluster_mode, ''));
INSERT INTO session_totals (domain, project_id, user_id, access_key, resource_group, type, status,
    result, image, cluster_mode, sessions)
    SELECT domain, project_id, user_id, access_key, resource_group, type, status, result, image,
    cluster_mode, COUNT(*) FROM sessions WHERE terminated_at IS NOT NULL
    GROUP BY domain, project_id, user_id, access_key, resource_group, type, status, result, image,
    cluster_mode;

-- Orders of lists. Equal priorities are many: they are told apart by what comes next.
CREATE INDEX sessions_by_creation ON sessions (created_at);
CREATE INDEX sessions_by_priority ON sessions (priority, seq);
