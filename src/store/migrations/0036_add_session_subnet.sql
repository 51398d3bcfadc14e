-- Addresses of a session whose kernels are on several agents ("10.214.64.0/28"), as long as it holds
-- them; NULL = it has none.
ALTER TABLE sessions ADD COLUMN subnet TEXT;
