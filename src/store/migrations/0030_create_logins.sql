-- Who has logged in with a browser, by the SHA-256 of the cookie.
CREATE TABLE logins (
    hash       BLOB    NOT NULL PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE, -- what it is called by: it opens nothing
    user_id    TEXT    NOT NULL REFERENCES users (id),
    access_key TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    address    TEXT    NOT NULL,
    agent      TEXT    NOT NULL -- User-Agent
);
CREATE INDEX logins_by_user ON logins (user_id);
CREATE INDEX logins_by_key ON logins (access_key);
CREATE INDEX logins_by_expiry ON logins (expires_at);
