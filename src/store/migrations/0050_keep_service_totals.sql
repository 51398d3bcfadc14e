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
