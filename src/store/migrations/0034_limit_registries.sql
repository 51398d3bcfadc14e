-- The registries whose images a domain may use, separated by spaces; NULL = all.
ALTER TABLE domains ADD COLUMN registries TEXT;
-- PostgreSQL's views have the columns that there were when they were made.
DROP VIEW present_domains;
CREATE VIEW present_domains AS SELECT * FROM domains WHERE is_purged = 0;
