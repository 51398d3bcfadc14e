-- What the scheduler made of a session: one row for each run of attempts with
-- the same answer, the oldest first. Of a placement the candidates are the detail.
CREATE TABLE session_attempts (
    session_seq INTEGER NOT NULL REFERENCES sessions (seq),
    number      INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    detail      TEXT, -- JSON
    PRIMARY KEY (session_seq, number)
) WITHOUT ROWID;
