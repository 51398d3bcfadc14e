-- Totals of what proxies counted, as JSON: of a model service ("service"), of one of its revisions
-- ("revision:3"), and of a token ("token:UUID").
CREATE TABLE model_service_totals (
    service_id TEXT NOT NULL REFERENCES model_services (id),
    object     TEXT NOT NULL,
    counts     TEXT NOT NULL,
    PRIMARY KEY (service_id, object)
);
-- When each rule of 'scaling' changed the number of replicas last: a JSON list, 0 = never.
ALTER TABLE model_services ADD COLUMN fired TEXT;
-- A replica that has half a share while a rollout has no room; 1, 0 or NULL.
ALTER TABLE sessions ADD COLUMN half_share INTEGER;
-- Since when a replica that lives counts as failed, and how many of each revision have failed.
ALTER TABLE sessions ADD COLUMN failed_at INTEGER;
ALTER TABLE model_service_revisions ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
