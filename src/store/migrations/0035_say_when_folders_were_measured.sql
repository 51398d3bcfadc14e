-- When files and bytes of a folder were measured; NULL = never. Of what was counted before this
-- column the time is not known, it was not before the folder was made.
ALTER TABLE folders ADD COLUMN counted_at INTEGER;
UPDATE folders SET counted_at = created_at WHERE files > 0 OR bytes > 0;
