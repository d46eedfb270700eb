-- What an act left of the rows that it changed: a line for each. The newest entry about a row tells whether it was put back.
ALTER TABLE audit ADD COLUMN changed_rows TEXT;
CREATE INDEX audit_by_changed_row ON audit (subject, id) WHERE changed_rows IS NOT NULL;
-- What an act changed, from what to what: JSON.
ALTER TABLE audit ADD COLUMN changes TEXT;
