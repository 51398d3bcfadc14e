-- What clients are told of sessions, in the order of the commits: who has missed some reads on from
-- the number of the last one. Rank -1 is the session itself.
CREATE TABLE session_events (
    number      INTEGER NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    session_seq INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    name        TEXT    NOT NULL,
    reason      TEXT,
    exit_code   INTEGER
);
