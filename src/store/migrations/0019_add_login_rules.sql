-- From where a user may come: networks with commas between; null = from anywhere.
-- When the password was set; null = not since the user was made.
ALTER TABLE users ADD COLUMN allowed_client_ip TEXT;
ALTER TABLE users ADD COLUMN password_changed_at INTEGER;
DROP VIEW present_users;
CREATE VIEW present_users AS SELECT * FROM users WHERE purged_email IS NULL;
