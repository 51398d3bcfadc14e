-- The configuration tree: keys as src/model/config_key.h writes them. What the API
-- kept as settings is a part of it.
CREATE TABLE config_entries (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO config_entries (key, value)
    SELECT 'manager/status', value FROM settings WHERE key = 'manager.status';
INSERT INTO config_entries (key, value)
    SELECT 'manager/announcement', value FROM settings
     WHERE key = 'manager.announcement' AND value <> '';
DELETE FROM settings WHERE key = 'manager.status' OR key = 'manager.announcement';
