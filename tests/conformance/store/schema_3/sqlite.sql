-- A SQLite store of schema 3 (the file's user_version and application_id are set by the test).
BEGIN TRANSACTION;
CREATE TABLE active_versions (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    previous TEXT,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "active_versions" VALUES('default','acme.texts','1.0.0',NULL,1,'ann');
CREATE TABLE affinities (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "affinities" VALUES('default','session:7','w-1',1800000000000,1800000000005);
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
INSERT INTO "audits" VALUES(1,'default',1800000000000,'ann','run.cancel 1','corr',NULL,X'7B2272756E223A317D');
CREATE TABLE doomed_runs (
    run_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO "doomed_runs" VALUES('run-0');
CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    software TEXT NOT NULL
) STRICT;
INSERT INTO "migrations" VALUES(1,'first','0.1.0');
INSERT INTO "migrations" VALUES(2,'holdings','0.1.0');
INSERT INTO "migrations" VALUES(3,'site','0.1.0');
CREATE TABLE packages (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    manifest BLOB NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    signature BLOB,
    signed_by TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    yanked_at INTEGER,
    yanked_reason TEXT NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT;
INSERT INTO "packages" VALUES('default','acme.texts','1.0.0','digest of acme.texts 1.0.0',7,X'7B226E616D65223A2261636D652E7465787473227D','digest of the manifest',X'7B7D','acme',1800000000000,'',NULL,'');
CREATE TABLE pages (
    run_id TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
INSERT INTO "pages" VALUES('run-0001',1,2,X'7B2261223A317D0A7B2262223A327D0A');
INSERT INTO "pages" VALUES('run-0001',3,3,X'7B7D0A');
CREATE TABLE plans (
    plan_id TEXT PRIMARY KEY,
    definition BLOB NOT NULL,
    plan BLOB NOT NULL
) STRICT;
INSERT INTO "plans" VALUES('plan-1',X'7B226E6F646573223A5B5D7D',X'00FF20706C616E');
CREATE TABLE resources (
    tenant TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    scope TEXT NOT NULL,
    run_id TEXT,
    node_id TEXT,
    package TEXT NOT NULL,
    size_bytes INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    is_artifact INTEGER NOT NULL,
    metadata BLOB NOT NULL,
    blob TEXT,
    PRIMARY KEY (tenant, worker_id, resource_id)
) STRICT;
INSERT INTO "resources" VALUES('default','w-1','res-1','file','ready','',NULL,NULL,'',3,1001,NULL,1,X'7B7D','artifacts/x');
CREATE TABLE rollouts (
    tenant TEXT NOT NULL,
    rollout_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    body BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, rollout_id)
) STRICT;
INSERT INTO "rollouts" VALUES('default','rollout-1','acme.texts','running',X'7B7D',1800000000000);
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
INSERT INTO "runs" VALUES('run-0001','default','flow',2,'Nightly','plan-1','queued',0,1001,NULL,NULL,NULL,'k','f','run-0');
INSERT INTO "runs" VALUES('run-0002','default','flow',NULL,'','plan-1','succeeded',0,1002,1799999999999,1800000000000,X'7B22636F6465223A2245227D',NULL,NULL,NULL);
CREATE TABLE shards (
    shard INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    commit_number INTEGER NOT NULL
) STRICT;
INSERT INTO "shards" VALUES(0,'one',1,1);
CREATE TABLE site (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
INSERT INTO "site" VALUES('blobs_id','b');
CREATE TABLE submissions (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "submissions" VALUES('default','k','f','run-0001',1001);
CREATE TABLE tenant_events (
    tenant TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "tenant_events" VALUES('default',1,1800000000000,'worker.online',X'7B226E223A317D');
INSERT INTO "tenant_events" VALUES('default',2,1800000000000,'worker.online',X'7B226E223A317D');
CREATE TABLE wishes (
    tenant TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    wish TEXT NOT NULL,
    state TEXT NOT NULL,
    why TEXT NOT NULL,
    tries INTEGER NOT NULL,
    error BLOB,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, worker_id, name, version)
) STRICT;
INSERT INTO "wishes" VALUES('default','w-1','acme.texts','1.0.0','installed','failed','demand',2,X'7B22636F6465223A2245227D',1800000000000);
INSERT INTO "wishes" VALUES('default','w-2','acme.texts','1.0.0','removed','wanted','',0,NULL,1800000000000);
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
INSERT INTO "workers" VALUES('default','w-1','key-1','',0,'','',0,X'7B227A6F6E65223A2261227D',X'5B5D','offline',0,X'7B7D');
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
INSERT INTO "workflow_versions" VALUES('default','a',1,'a 1',X'7B226E6F646573223A5B5D7D',1,1,'ann');
INSERT INTO "workflow_versions" VALUES('default','a',2,'a 2',X'7B226E6F646573223A5B5D7D',1,2,'ann');
CREATE TABLE workflows (
    tenant TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, workflow_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "workflows" VALUES('default','a',2,2);
CREATE INDEX runs_by_time ON runs (tenant, created_at, run_id);
CREATE INDEX runs_by_status ON runs (tenant, status, created_at, run_id);
CREATE INDEX runs_by_workflow ON runs (tenant, workflow_id, created_at, run_id);
CREATE INDEX runs_by_plan ON runs (plan_id);
CREATE INDEX runs_active ON runs (created_at, run_id) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at, run_id) WHERE finished_at IS NOT NULL;
CREATE UNIQUE INDEX pages_by_run ON pages (run_id, last);
CREATE INDEX submissions_by_time ON submissions (created_at, tenant, key);
CREATE INDEX workflows_by_time ON workflows (tenant, updated_at, workflow_id);
CREATE INDEX tenant_events_by_time ON tenant_events (at);
CREATE INDEX audits_by_tenant ON audits (tenant, number);
CREATE INDEX rollouts_by_time ON rollouts (updated_at, tenant, rollout_id);
CREATE INDEX wishes_by_time ON wishes (updated_at);
CREATE INDEX resources_by_time ON resources (tenant, created_at, worker_id, resource_id);
CREATE INDEX resources_by_id ON resources (tenant, resource_id, worker_id);
CREATE INDEX resources_by_run ON resources (tenant, run_id, created_at, worker_id, resource_id);
CREATE INDEX resources_ended ON resources (coalesce(expires_at, created_at)) WHERE state IN ('evicted', 'released');
CREATE INDEX resources_with_copy ON resources (blob) WHERE blob IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audits',1);
COMMIT;
