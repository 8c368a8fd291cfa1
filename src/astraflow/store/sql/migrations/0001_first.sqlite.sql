-- Text is compared by bytes everywhere, so that lists have the same order on every back end.
-- The columns of a table stand in the order of the fields of its row.

CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    software TEXT NOT NULL
) STRICT;

CREATE TABLE shards (
    shard INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    commit_number INTEGER NOT NULL
) STRICT;

INSERT INTO shards (shard, owner, epoch, commit_number) VALUES (0, '', 0, 0);

CREATE TABLE plans (
    plan_id TEXT PRIMARY KEY,
    definition BLOB NOT NULL,
    plan BLOB NOT NULL
) STRICT;

CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    workflow_version INTEGER,
    name TEXT NOT NULL,
    plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    status TEXT NOT NULL,
    cancel_requested INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    error BLOB,
    idempotency_key TEXT,
    fingerprint TEXT,
    rerun_of TEXT
) STRICT;

CREATE INDEX runs_by_time ON runs (tenant, created_at, run_id);
CREATE INDEX runs_by_status ON runs (tenant, status, created_at, run_id);
CREATE INDEX runs_by_workflow ON runs (tenant, workflow_id, created_at, run_id);
CREATE INDEX runs_by_plan ON runs (plan_id);
CREATE INDEX runs_active ON runs (created_at, run_id) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at, run_id) WHERE finished_at IS NOT NULL;

-- No reference to runs: the pages of a removed run go in pieces (doomed_runs).
CREATE TABLE pages (
    run_id TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX pages_by_run ON pages (run_id, last);

CREATE TABLE doomed_runs (
    run_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Apart from runs: a key goes on answering after its run is removed.
CREATE TABLE submissions (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX submissions_by_time ON submissions (created_at, tenant, key);

CREATE TABLE workers (
    tenant TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    version TEXT NOT NULL,
    hostname TEXT NOT NULL,
    max_parallel INTEGER NOT NULL,
    labels BLOB NOT NULL,
    packages BLOB NOT NULL,
    status TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    drain BLOB,
    PRIMARY KEY (tenant, worker_id)
) STRICT;

-- The newest version of each workflow: what a save is compared with, and what lists are ordered by.
CREATE TABLE workflows (
    tenant TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, workflow_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX workflows_by_time ON workflows (tenant, updated_at, workflow_id);

CREATE TABLE workflow_versions (
    tenant TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    definition BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (tenant, workflow_id, version),
    FOREIGN KEY (tenant, workflow_id) REFERENCES workflows (tenant, workflow_id) ON DELETE CASCADE
) STRICT;

CREATE TABLE tenant_events (
    tenant TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX tenant_events_by_time ON tenant_events (at);

CREATE TABLE audits (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    corr TEXT,
    code TEXT,
    detail BLOB NOT NULL
) STRICT;

CREATE INDEX audits_by_tenant ON audits (tenant, number);

PRAGMA user_version = 1;
