-- When a session in ERROR was removed, or its owner had seen why; null = not yet.
ALTER TABLE sessions ADD COLUMN dismissed_at INTEGER;
