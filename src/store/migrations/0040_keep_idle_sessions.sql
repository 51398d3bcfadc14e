-- How long sessions that live are kept while nobody uses them (model/idle.h). Durations are
-- microseconds. 0 = there is none; of an exemption: it has no end.
CREATE TABLE session_idle (
    session_seq INTEGER NOT NULL PRIMARY KEY REFERENCES sessions (seq),
    busy        INTEGER NOT NULL,
    active_at   INTEGER NOT NULL,
    began_at    INTEGER NOT NULL,
    extended_at INTEGER NOT NULL,
    extension   INTEGER NOT NULL,
    extensions  INTEGER NOT NULL, -- all of the session together
    exempted_at INTEGER NOT NULL,
    exemption   INTEGER NOT NULL
);
-- What users may add to an idle session, all in all; 0 = no limit.
ALTER TABLE keypair_policies ADD COLUMN max_idle_extension_sec INTEGER NOT NULL DEFAULT 0;
