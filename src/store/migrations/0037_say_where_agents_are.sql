-- The topology label of an agent, as zone-a/rack-3/switch-1; NULL = it has none.
ALTER TABLE agents ADD COLUMN topology TEXT;
