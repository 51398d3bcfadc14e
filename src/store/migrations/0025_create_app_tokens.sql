-- What lets a browser into an app of a session, once and within a minute; by their SHA-256.
CREATE TABLE app_tokens (
    hash       BLOB    NOT NULL PRIMARY KEY,
    session_id TEXT    NOT NULL,
    app        TEXT    NOT NULL,
    access_key TEXT    NOT NULL, -- for whom
    expires_at INTEGER NOT NULL
);
