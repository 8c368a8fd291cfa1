-- What is held beside runs: packages and what is wished about them, resources, affinities.

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

CREATE TABLE active_versions (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    previous TEXT,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollouts (
    tenant TEXT NOT NULL,
    rollout_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    body BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, rollout_id)
) STRICT;

CREATE INDEX rollouts_by_time ON rollouts (updated_at, tenant, rollout_id);

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

CREATE INDEX wishes_by_time ON wishes (updated_at);

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

CREATE INDEX resources_by_time ON resources (tenant, created_at, worker_id, resource_id);
CREATE INDEX resources_by_id ON resources (tenant, resource_id, worker_id);
CREATE INDEX resources_by_run ON resources (tenant, run_id, created_at, worker_id, resource_id);
CREATE INDEX resources_ended ON resources (coalesce(expires_at, created_at)) WHERE state IN ('evicted', 'released');
CREATE INDEX resources_with_copy ON resources (blob) WHERE blob IS NOT NULL;

CREATE TABLE affinities (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    worker_id TEXT NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 2;
