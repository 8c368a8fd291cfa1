-- Text is compared by bytes everywhere, so that lists have the same order on every back end.
-- The columns of a table stand in the order of the fields of its row.

CREATE TABLE migrations (
    version bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    software text COLLATE "C" NOT NULL
);

-- `writer` grows with every connection of the owner, so that a commit left under way on a connection that was given up
-- cannot be written after it has been asked for. `held_bytes` is the size of all pages: what the database takes on the
-- disk says little, because removed rows leave room behind that is used again later.
CREATE TABLE shards (
    shard bigint PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    commit_number bigint NOT NULL,
    writer bigint NOT NULL,
    leased_until timestamptz NOT NULL,
    held_bytes bigint NOT NULL
);

INSERT INTO shards VALUES (0, '', 0, 0, 0, '-infinity', 0);

CREATE TABLE plans (
    plan_id text COLLATE "C" PRIMARY KEY,
    definition bytea NOT NULL,
    plan bytea NOT NULL
);

CREATE TABLE runs (
    run_id text COLLATE "C" PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    workflow_version bigint,
    name text COLLATE "C" NOT NULL,
    plan_id text COLLATE "C" NOT NULL REFERENCES plans (plan_id),
    status text COLLATE "C" NOT NULL,
    cancel_requested boolean NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    error bytea,
    idempotency_key text COLLATE "C",
    fingerprint text COLLATE "C",
    rerun_of text COLLATE "C"
);

CREATE INDEX runs_by_time ON runs (tenant, created_at, run_id);
CREATE INDEX runs_by_status ON runs (tenant, status, created_at, run_id);
CREATE INDEX runs_by_workflow ON runs (tenant, workflow_id, created_at, run_id);
CREATE INDEX runs_by_plan ON runs (plan_id);
CREATE INDEX runs_active ON runs (created_at, run_id) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at, run_id) WHERE finished_at IS NOT NULL;

-- No reference to runs: the pages of a removed run go in pieces (doomed_runs).
CREATE TABLE pages (
    run_id text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run_id, last)
);

CREATE TABLE doomed_runs (
    run_id text COLLATE "C" PRIMARY KEY
);

-- Apart from runs: a key goes on answering after its run is removed.
CREATE TABLE submissions (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C",
    run_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX submissions_by_time ON submissions (created_at, tenant, key);

CREATE TABLE workers (
    tenant text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    version text COLLATE "C" NOT NULL,
    hostname text COLLATE "C" NOT NULL,
    max_parallel bigint NOT NULL,
    labels bytea NOT NULL,
    packages bytea NOT NULL,
    status text COLLATE "C" NOT NULL,
    seen_at bigint NOT NULL,
    drain bytea,
    PRIMARY KEY (tenant, worker_id)
);

-- The newest version of each workflow: what a save is compared with, and what lists are ordered by.
CREATE TABLE workflows (
    tenant text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, workflow_id)
);

CREATE INDEX workflows_by_time ON workflows (tenant, updated_at, workflow_id);

CREATE TABLE workflow_versions (
    tenant text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    definition bytea NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    updated_by text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, workflow_id, version),
    FOREIGN KEY (tenant, workflow_id) REFERENCES workflows (tenant, workflow_id) ON DELETE CASCADE
);

CREATE TABLE tenant_events (
    tenant text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, number)
);

CREATE INDEX tenant_events_by_time ON tenant_events (at);

CREATE TABLE audits (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    who text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    corr text COLLATE "C",
    code text COLLATE "C",
    detail bytea NOT NULL
);

CREATE INDEX audits_by_tenant ON audits (tenant, number);

-- A statement that must not be written says so from inside.
CREATE FUNCTION refuse(reason text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', reason USING ERRCODE = 'integrity_constraint_violation';
END
$$;
