-- Bookings: amounts of agents that are kept for projects and users during a time.
CREATE TABLE bookings (
    id               TEXT    NOT NULL PRIMARY KEY,
    name             TEXT    NOT NULL,
    version          INTEGER NOT NULL,
    resource_group   TEXT    NOT NULL,
    starts_at        INTEGER NOT NULL,
    ends_at          INTEGER NOT NULL,
    amounts          TEXT    NOT NULL, -- on each place, as in kernels.requested
    nodes            INTEGER NOT NULL, -- how many places
    release_unused   INTEGER NOT NULL, -- microseconds; 0 = never
    ignores_sessions INTEGER NOT NULL,
    details          TEXT    NOT NULL, -- JSON: for whom, on which agents, places
    creator_id       TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    outcome          TEXT CHECK (outcome IN ('ended', 'released', 'canceled')),
    finished_at      INTEGER,          -- null as long as it is planned or active
    reason           TEXT
);
CREATE UNIQUE INDEX bookings_live_name ON bookings (name) WHERE finished_at IS NULL;
CREATE INDEX bookings_finished ON bookings (finished_at);

-- In which it runs.
ALTER TABLE sessions ADD COLUMN booking_id TEXT;
CREATE INDEX sessions_of_booking ON sessions (booking_id) WHERE booking_id IS NOT NULL;
