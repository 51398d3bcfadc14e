-- A policy can be taken out of use, as domains, projects and resource groups can.
ALTER TABLE keypair_policies ADD COLUMN is_active INTEGER NOT NULL DEFAULT 1;

-- What was purged, but that sessions of the past name: the row stays for them
-- and for nothing else, with its name in another column, free for new ones.
ALTER TABLE users ADD COLUMN purged_email TEXT;
ALTER TABLE projects ADD COLUMN purged_name TEXT;
ALTER TABLE domains ADD COLUMN is_purged INTEGER NOT NULL DEFAULT 0;
CREATE VIEW present_users AS SELECT * FROM users WHERE purged_email IS NULL;
CREATE VIEW present_projects AS SELECT * FROM projects WHERE purged_name IS NULL;
CREATE VIEW present_domains AS SELECT * FROM domains WHERE is_purged = 0;
