-- Failures on the way to a start that follow one another: "STEP:COUNT" as in
-- src/model/retry.h, empty when there are none.
ALTER TABLE sessions ADD COLUMN retry TEXT NOT NULL DEFAULT '';
