-- What all sessions of a user may hold together, whatever keypair made them;
-- what those of a keypair may ask for while they wait.
ALTER TABLE users ADD COLUMN total_slots TEXT NOT NULL DEFAULT '{}';
ALTER TABLE users ADD COLUMN max_concurrent_sessions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keypair_policies ADD COLUMN max_pending_slots TEXT NOT NULL DEFAULT '{}';
