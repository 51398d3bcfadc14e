-- Attempts of a batch session that have ended, and what they used of its retries, as in
-- src/model/rerun.h; empty when none has.
ALTER TABLE sessions ADD COLUMN rerun TEXT NOT NULL DEFAULT '';

-- Each attempt after which a session went back to the queue. That of its end is in the rows of the
-- session and its kernels.
CREATE TABLE session_runs (
    session_seq    INTEGER NOT NULL REFERENCES sessions (seq),
    number         INTEGER NOT NULL, -- from 1
    started_at     INTEGER,          -- null: its program did not start
    ended_at       INTEGER NOT NULL,
    reason         TEXT,
    exit_code      INTEGER,
    rank           INTEGER NOT NULL, -- of the kernel whose end it was
    agent_id       TEXT,             -- of that kernel
    kernel_attempt INTEGER NOT NULL, -- of that kernel
    text           TEXT,
    used           TEXT,             -- JSON
    PRIMARY KEY (session_seq, number)
) WITHOUT ROWID;
