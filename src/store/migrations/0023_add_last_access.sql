-- When somebody worked in the session last, by an app, a terminal, a command or files; null = never.
ALTER TABLE sessions ADD COLUMN last_access INTEGER;
