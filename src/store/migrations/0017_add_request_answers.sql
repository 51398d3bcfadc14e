-- What requests were answered, for clients that send one again because its answer was lost.
CREATE TABLE request_answers (
    seq         INTEGER PRIMARY KEY,
    access_key  TEXT    NOT NULL, -- who asked
    request_key TEXT    NOT NULL, -- as the client named the request, or "~" and its signature
    digest      TEXT    NOT NULL, -- SHA-256 of method, target and body
    kept_at     INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    body        TEXT    NOT NULL
);
CREATE UNIQUE INDEX request_answers_by_key ON request_answers (access_key, request_key);
