-- What part of a device each replica is to have now, millionths; 0 = the amount of its revision.
ALTER TABLE model_services ADD COLUMN share_micro INTEGER NOT NULL DEFAULT 0;
ALTER TABLE model_service_history ADD COLUMN share_micro INTEGER NOT NULL DEFAULT 0;
