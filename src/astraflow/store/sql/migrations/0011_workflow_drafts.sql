-- What people work on, apart from the versions that runs use: one draft of each workflow, saved before its first
-- version too. A version has a note of who made it.
ALTER TABLE workflow_versions ADD COLUMN note {text} NOT NULL DEFAULT '';

CREATE TABLE workflow_drafts (
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    revision {integer} NOT NULL,
    base_version {integer} NOT NULL,
    name {text} NOT NULL,
    definition {bytes} NOT NULL,
    updated_at {integer} NOT NULL,
    updated_by {text} NOT NULL,
    PRIMARY KEY (tenant, workflow_id)
){strict};

CREATE INDEX workflow_drafts_by_time ON workflow_drafts (tenant, updated_at, workflow_id);
