-- When a keypair signed a request last; null = never.
ALTER TABLE keypairs ADD COLUMN used_at INTEGER;
