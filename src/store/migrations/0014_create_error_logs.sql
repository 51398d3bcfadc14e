-- What went wrong in clients, as they report it themselves.
CREATE TABLE error_logs (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    at             INTEGER NOT NULL,
    user_id        TEXT    NOT NULL, -- who reported it
    severity       TEXT    NOT NULL,
    source         TEXT    NOT NULL,
    message        TEXT    NOT NULL,
    context_lang   TEXT    NOT NULL,
    context_env    TEXT    NOT NULL, -- JSON
    request_url    TEXT,
    request_status INTEGER,
    traceback      TEXT,
    is_read        INTEGER NOT NULL,
    is_cleared     INTEGER NOT NULL
);
CREATE INDEX error_logs_by_at ON error_logs (at);
CREATE INDEX error_logs_by_user ON error_logs (user_id, seq);
