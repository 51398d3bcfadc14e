-- What is said of a user; NULL = nothing.
ALTER TABLE users ADD COLUMN description TEXT;
-- PostgreSQL's views have the columns that there were when they were made.
DROP VIEW present_users;
CREATE VIEW present_users AS SELECT * FROM users WHERE purged_email IS NULL;
