-- The facts of one run in one transaction are a segment; what shall be on a worker is an install intent.
ALTER TABLE pages RENAME TO fact_segments;
ALTER TABLE wishes RENAME TO install_intents;
ALTER TABLE install_intents RENAME COLUMN wish TO intent;

DROP INDEX wishes_by_time;
CREATE INDEX install_intents_by_time ON install_intents (updated_at);
