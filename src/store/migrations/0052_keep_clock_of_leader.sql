-- What the leader's wall clock showed at its last commit, in microseconds, and in which epoch: a
-- manager with another clock that takes over reads its predecessor's times by it.
ALTER TABLE manager_lease ADD COLUMN clock_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE manager_lease ADD COLUMN clock_epoch INTEGER NOT NULL DEFAULT 0;
