-- Who submitted a run, and the trigger that did, if one did: lists show both and are filtered by them. Runs from before
-- have neither here; their first fact has who it was.
ALTER TABLE runs ADD COLUMN submitted_by {text} NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN trigger_name {text} NOT NULL DEFAULT '';
