-- A user's own by priority, and what most filters of own lists look at without the rows themselves.
CREATE INDEX sessions_of_user ON sessions (user_id, priority, seq, name, created_at, access_key);
