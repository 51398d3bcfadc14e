-- Whose the changed object is: administrators of that domain see the entry; null = superadmins only.
ALTER TABLE audit_log ADD COLUMN object_domain TEXT;
UPDATE audit_log SET object_domain = domain;
-- A row is written with each change, also of sessions, and read seldom: this index cost most of it.
DROP INDEX audit_log_by_user;
