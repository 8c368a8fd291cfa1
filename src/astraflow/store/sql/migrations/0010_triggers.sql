-- Triggers of saved workflows, and the newest of what each has fired. Both go with their workflow.
CREATE TABLE triggers (
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    name {text} NOT NULL,
    body {bytes} NOT NULL,
    updated_at {integer} NOT NULL,
    PRIMARY KEY (tenant, workflow_id, name),
    FOREIGN KEY (tenant, workflow_id) REFERENCES workflows (tenant, workflow_id) ON DELETE CASCADE
){strict};

CREATE TABLE trigger_fires (
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    name {text} NOT NULL,
    number {integer} NOT NULL,
    slot {text} NOT NULL,
    outcome {text} NOT NULL,
    body {bytes} NOT NULL,
    at {integer} NOT NULL,
    PRIMARY KEY (tenant, workflow_id, name, number),
    FOREIGN KEY (tenant, workflow_id, name) REFERENCES triggers (tenant, workflow_id, name) ON DELETE CASCADE
){strict};

CREATE INDEX trigger_fires_by_slot ON trigger_fires (tenant, workflow_id, name, slot, number);
