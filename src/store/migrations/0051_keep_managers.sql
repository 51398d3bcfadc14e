-- Which managers there are, where the one that leads is reached, and how old a program may be that
-- opens this database. incarnation: of the process that leads; its sessions on the server have it
-- in their application_name. is_held: 0 = the last one that led gave it up.
ALTER TABLE manager_lease ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE manager_lease ADD COLUMN link TEXT NOT NULL DEFAULT '';
ALTER TABLE manager_lease ADD COLUMN api TEXT NOT NULL DEFAULT '';
ALTER TABLE manager_lease ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE manager_lease ADD COLUMN incarnation TEXT NOT NULL DEFAULT '';
ALTER TABLE manager_lease ADD COLUMN is_held INTEGER NOT NULL DEFAULT 0;

CREATE TABLE managers (
    name      TEXT    NOT NULL PRIMARY KEY,
    link      TEXT    NOT NULL, -- host:port for agents and other managers
    api       TEXT    NOT NULL, -- URL for clients
    version   TEXT    NOT NULL,
    joined_at INTEGER NOT NULL
);

-- The oldest program that may serve this database, by the number of its last migration: one row.
CREATE TABLE schema_readers (
    id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    oldest INTEGER NOT NULL
);
INSERT INTO schema_readers (id, oldest) VALUES (1, 51);
