-- How many system sessions a keypair may have; 0 = no limit.
ALTER TABLE keypair_policies ADD COLUMN max_concurrent_sftp_sessions INTEGER NOT NULL DEFAULT 1;
