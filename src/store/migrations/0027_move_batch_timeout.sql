-- The time limit of batch sessions is in their spec, as all that they ask for. A spec is a JSON
-- object with an image; as text, so that both engines do the same and its keys keep their order.
UPDATE sessions SET spec = '{"batch_timeout_usec":' || batch_timeout || ',' || SUBSTR(spec, 2)
    WHERE batch_timeout > 0 AND spec LIKE '{"%';
ALTER TABLE sessions DROP COLUMN batch_timeout;
