-- Which manager writes, where others could: one row. Each of its commits counts beat up.
CREATE TABLE manager_lease (
    id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    epoch    INTEGER NOT NULL, -- counts managers
    beat     INTEGER NOT NULL, -- counts commits
    address  TEXT    NOT NULL,
    taken_at INTEGER NOT NULL
);
INSERT INTO manager_lease (id, epoch, beat, address, taken_at) VALUES (1, 0, 0, '', 0);
