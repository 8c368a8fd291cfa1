-- A PostgreSQL store of schema 3.
CREATE SCHEMA astraflow;
SET search_path = astraflow;
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

-- What is held beside runs: packages and what is wished about them, resources, affinities.

CREATE TABLE packages (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    size_bytes bigint NOT NULL,
    manifest bytea NOT NULL,
    manifest_sha256 text COLLATE "C" NOT NULL,
    signature bytea,
    signed_by text COLLATE "C" NOT NULL,
    published_at bigint NOT NULL,
    published_by text COLLATE "C" NOT NULL,
    yanked_at bigint,
    yanked_reason text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name, version)
);

CREATE TABLE active_versions (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    previous text COLLATE "C",
    updated_at bigint NOT NULL,
    updated_by text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE rollouts (
    tenant text COLLATE "C" NOT NULL,
    rollout_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, rollout_id)
);

CREATE INDEX rollouts_by_time ON rollouts (updated_at, tenant, rollout_id);

CREATE TABLE wishes (
    tenant text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    wish text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    why text COLLATE "C" NOT NULL,
    tries bigint NOT NULL,
    error bytea,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, worker_id, name, version)
);

CREATE INDEX wishes_by_time ON wishes (updated_at);

CREATE TABLE resources (
    tenant text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    node_id text COLLATE "C",
    package text COLLATE "C" NOT NULL,
    size_bytes bigint,
    created_at bigint NOT NULL,
    expires_at bigint,
    is_artifact boolean NOT NULL,
    metadata bytea NOT NULL,
    blob text COLLATE "C",
    PRIMARY KEY (tenant, worker_id, resource_id)
);

CREATE INDEX resources_by_time ON resources (tenant, created_at, worker_id, resource_id);
CREATE INDEX resources_by_id ON resources (tenant, resource_id, worker_id);
CREATE INDEX resources_by_run ON resources (tenant, run_id, created_at, worker_id, resource_id);
CREATE INDEX resources_ended ON resources (coalesce(expires_at, created_at)) WHERE state IN ('evicted', 'released');
CREATE INDEX resources_with_copy ON resources (blob) WHERE blob IS NOT NULL;

CREATE TABLE affinities (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL,
    acquired_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- Which connection of the server is the owner's: when it is gone, so is the owner, and its claim need not run out. They
-- count only for the epoch that they were written with: a scheduler of an older version does not write them.
ALTER TABLE shards
    ADD COLUMN renewed_at timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN backend_epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN backend_pid integer,
    ADD COLUMN backend_start timestamptz;

-- What is true of all schedulers that share this store.
CREATE TABLE site (
    name text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
);

INSERT INTO migrations (version, name, software) VALUES (1, 'first', '0.1.0');
INSERT INTO migrations (version, name, software) VALUES (2, 'holdings', '0.1.0');
INSERT INTO migrations (version, name, software) VALUES (3, 'site', '0.1.0');
INSERT INTO plans (plan_id, definition, plan) VALUES ('plan-1', '\x7b226e6f646573223a5b5d7d', '\x00ff20706c616e');
INSERT INTO runs (run_id, tenant, workflow_id, workflow_version, name, plan_id, status, cancel_requested, created_at, started_at, finished_at, error, idempotency_key, fingerprint, rerun_of) VALUES ('run-0001', 'default', 'flow', 2, 'Nightly', 'plan-1', 'queued', false, 1001, NULL, NULL, NULL, 'k', 'f', 'run-0');
INSERT INTO runs (run_id, tenant, workflow_id, workflow_version, name, plan_id, status, cancel_requested, created_at, started_at, finished_at, error, idempotency_key, fingerprint, rerun_of) VALUES ('run-0002', 'default', 'flow', NULL, '', 'plan-1', 'succeeded', false, 1002, 1799999999999, 1800000000000, '\x7b22636f6465223a2245227d', NULL, NULL, NULL);
INSERT INTO pages (run_id, first, last, body) VALUES ('run-0001', 1, 2, '\x7b2261223a317d0a7b2262223a327d0a');
INSERT INTO pages (run_id, first, last, body) VALUES ('run-0001', 3, 3, '\x7b7d0a');
INSERT INTO submissions (tenant, key, fingerprint, run_id, created_at) VALUES ('default', 'k', 'f', 'run-0001', 1001);
INSERT INTO doomed_runs (run_id) VALUES ('run-0');
INSERT INTO workers (tenant, worker_id, subject, name, incarnation, version, hostname, max_parallel, labels, packages, status, seen_at, drain) VALUES ('default', 'w-1', 'key-1', '', 0, '', '', 0, '\x7b227a6f6e65223a2261227d', '\x5b5d', 'offline', 0, '\x7b7d');
INSERT INTO workflows (tenant, workflow_id, version, updated_at) VALUES ('default', 'a', 2, 2);
INSERT INTO workflow_versions (tenant, workflow_id, version, name, definition, created_at, updated_at, updated_by) VALUES ('default', 'a', 1, 'a 1', '\x7b226e6f646573223a5b5d7d', 1, 1, 'ann');
INSERT INTO workflow_versions (tenant, workflow_id, version, name, definition, created_at, updated_at, updated_by) VALUES ('default', 'a', 2, 'a 2', '\x7b226e6f646573223a5b5d7d', 1, 2, 'ann');
INSERT INTO tenant_events (tenant, number, at, type, body) VALUES ('default', 1, 1800000000000, 'worker.online', '\x7b226e223a317d');
INSERT INTO tenant_events (tenant, number, at, type, body) VALUES ('default', 2, 1800000000000, 'worker.online', '\x7b226e223a317d');
INSERT INTO audits (tenant, at, who, action, corr, code, detail) VALUES ('default', 1800000000000, 'ann', 'run.cancel 1', 'corr', NULL, '\x7b2272756e223a317d');
INSERT INTO packages (tenant, name, version, sha256, size_bytes, manifest, manifest_sha256, signature, signed_by, published_at, published_by, yanked_at, yanked_reason) VALUES ('default', 'acme.texts', '1.0.0', 'digest of acme.texts 1.0.0', 7, '\x7b226e616d65223a2261636d652e7465787473227d', 'digest of the manifest', '\x7b7d', 'acme', 1800000000000, '', NULL, '');
INSERT INTO active_versions (tenant, name, version, previous, updated_at, updated_by) VALUES ('default', 'acme.texts', '1.0.0', NULL, 1, 'ann');
INSERT INTO rollouts (tenant, rollout_id, name, state, body, updated_at) VALUES ('default', 'rollout-1', 'acme.texts', 'running', '\x7b7d', 1800000000000);
INSERT INTO wishes (tenant, worker_id, name, version, wish, state, why, tries, error, updated_at) VALUES ('default', 'w-1', 'acme.texts', '1.0.0', 'installed', 'failed', 'demand', 2, '\x7b22636f6465223a2245227d', 1800000000000);
INSERT INTO wishes (tenant, worker_id, name, version, wish, state, why, tries, error, updated_at) VALUES ('default', 'w-2', 'acme.texts', '1.0.0', 'removed', 'wanted', '', 0, NULL, 1800000000000);
INSERT INTO resources (tenant, worker_id, resource_id, type, state, scope, run_id, node_id, package, size_bytes, created_at, expires_at, is_artifact, metadata, blob) VALUES ('default', 'w-1', 'res-1', 'file', 'ready', '', NULL, NULL, '', 3, 1001, NULL, true, '\x7b7d', 'artifacts/x');
INSERT INTO affinities (tenant, key, worker_id, acquired_at, expires_at) VALUES ('default', 'session:7', 'w-1', 1800000000000, 1800000000005);
INSERT INTO site (name, value) VALUES ('blobs_id', 'b');
UPDATE shards SET owner = 'one', epoch = 1, commit_number = 1, writer = 1, held_bytes = 19;
