-- Whether a user must change the password before logging in with it.
-- A public SSH key that the keypair's sessions accept besides their own; null = none.
ALTER TABLE users ADD COLUMN need_password_change INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keypairs ADD COLUMN ssh_public_key TEXT;
DROP VIEW present_users;
CREATE VIEW present_users AS SELECT * FROM users WHERE purged_email IS NULL;
