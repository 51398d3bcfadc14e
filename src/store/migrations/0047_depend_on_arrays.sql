-- Sessions that wait for all elements of an array, or for an element that had no row yet when
-- the dependency was created.
CREATE TABLE array_dependencies (
    session_seq INTEGER NOT NULL REFERENCES sessions (seq),
    array_id    TEXT    NOT NULL REFERENCES arrays (id),
    element     INTEGER NOT NULL, -- index; -1 = all of them
    condition   TEXT    NOT NULL, -- as in session_dependencies
    PRIMARY KEY (session_seq, array_id, element)
) WITHOUT ROWID;
CREATE INDEX array_dependencies_back ON array_dependencies (array_id, element);
