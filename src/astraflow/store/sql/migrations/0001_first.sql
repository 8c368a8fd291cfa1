-- Text is compared by bytes everywhere, so that lists have the same order on every back end.
-- What the databases do not have in common is in the files of this number that are named after them.

CREATE TABLE migrations (
    version {integer} PRIMARY KEY,
    name {text} NOT NULL,
    software {text} NOT NULL
){strict};

CREATE TABLE plans (
    plan_id {text} PRIMARY KEY,
    definition {bytes} NOT NULL,
    plan {bytes} NOT NULL
){strict};

CREATE TABLE runs (
    run_id {text} PRIMARY KEY,
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    workflow_version {integer},
    name {text} NOT NULL,
    plan_id {text} NOT NULL REFERENCES plans (plan_id),
    status {text} NOT NULL,
    cancel_requested {boolean} NOT NULL,
    created_at {integer} NOT NULL,
    started_at {integer},
    finished_at {integer},
    error {bytes},
    idempotency_key {text},
    fingerprint {text},
    rerun_of {text}
){strict};

CREATE INDEX runs_by_time ON runs (tenant, created_at, run_id);
CREATE INDEX runs_by_status ON runs (tenant, status, created_at, run_id);
CREATE INDEX runs_by_workflow ON runs (tenant, workflow_id, created_at, run_id);
CREATE INDEX runs_by_plan ON runs (plan_id);
CREATE INDEX runs_active ON runs (created_at, run_id) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at, run_id) WHERE finished_at IS NOT NULL;

-- The pages of a removed run go in pieces: a page does not refer to its run.
CREATE TABLE doomed_runs (
    run_id {text} PRIMARY KEY
){keyed};

-- Apart from runs: a key goes on answering after its run is removed.
CREATE TABLE submissions (
    tenant {text} NOT NULL,
    key {text} NOT NULL,
    fingerprint {text},
    run_id {text} NOT NULL,
    created_at {integer} NOT NULL,
    PRIMARY KEY (tenant, key)
){keyed};

CREATE INDEX submissions_by_time ON submissions (created_at, tenant, key);

CREATE TABLE workers (
    tenant {text} NOT NULL,
    worker_id {text} NOT NULL,
    subject {text} NOT NULL,
    name {text} NOT NULL,
    incarnation {integer} NOT NULL,
    version {text} NOT NULL,
    hostname {text} NOT NULL,
    max_parallel {integer} NOT NULL,
    labels {bytes} NOT NULL,
    packages {bytes} NOT NULL,
    status {text} NOT NULL,
    seen_at {integer} NOT NULL,
    drain {bytes},
    PRIMARY KEY (tenant, worker_id)
){strict};

-- The newest version of each workflow: what a save is compared with, and what lists are ordered by.
CREATE TABLE workflows (
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    version {integer} NOT NULL,
    updated_at {integer} NOT NULL,
    PRIMARY KEY (tenant, workflow_id)
){keyed};

CREATE INDEX workflows_by_time ON workflows (tenant, updated_at, workflow_id);

CREATE TABLE workflow_versions (
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    version {integer} NOT NULL,
    name {text} NOT NULL,
    definition {bytes} NOT NULL,
    created_at {integer} NOT NULL,
    updated_at {integer} NOT NULL,
    updated_by {text} NOT NULL,
    PRIMARY KEY (tenant, workflow_id, version),
    FOREIGN KEY (tenant, workflow_id) REFERENCES workflows (tenant, workflow_id) ON DELETE CASCADE
){strict};

CREATE TABLE tenant_events (
    tenant {text} NOT NULL,
    number {integer} NOT NULL,
    at {integer} NOT NULL,
    type {text} NOT NULL,
    body {bytes} NOT NULL,
    PRIMARY KEY (tenant, number)
){keyed};

CREATE INDEX tenant_events_by_time ON tenant_events (at);
