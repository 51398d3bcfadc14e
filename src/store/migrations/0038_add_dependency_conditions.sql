-- Which state of the other session a dependency waits for: success, failure, end or start.
ALTER TABLE session_dependencies ADD COLUMN condition TEXT NOT NULL DEFAULT 'success';
