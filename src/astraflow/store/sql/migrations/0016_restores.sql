-- `readable_by`: the oldest schema whose software can work with this one; NULL: none but this one's and newer ones'.
-- `attempt_floor`: attempts of this run are numbered above it. A restored run has been going on elsewhere since its backup.
ALTER TABLE migrations ADD COLUMN readable_by {integer};
ALTER TABLE runs ADD COLUMN attempt_floor {integer} NOT NULL DEFAULT 0;
