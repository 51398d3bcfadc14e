-- Who did or tried what; the oldest rows go when they are old or many.
CREATE TABLE audit_log (
    seq         INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    user_id     TEXT,             -- null = no user that exists
    user_name   TEXT    NOT NULL, -- e-mail, or the name that was tried
    domain      TEXT,             -- of the user; null = none
    access_key  TEXT,
    address     TEXT,
    action      TEXT    NOT NULL,
    object_kind TEXT,
    object_id   TEXT,
    object_name TEXT,
    outcome     TEXT    NOT NULL,
    times       INTEGER NOT NULL, -- in a row; of more than one this is the last
    detail      TEXT,             -- JSON
    request_id  TEXT
);
CREATE INDEX audit_log_by_at ON audit_log (at);
CREATE INDEX audit_log_by_user ON audit_log (user_name, seq);
