-- What is held beside runs: packages and what is wished about them, resources, affinities.

CREATE TABLE packages (
    tenant {text} NOT NULL,
    name {text} NOT NULL,
    version {text} NOT NULL,
    sha256 {text} NOT NULL,
    size_bytes {integer} NOT NULL,
    manifest {bytes} NOT NULL,
    manifest_sha256 {text} NOT NULL,
    signature {bytes},
    signed_by {text} NOT NULL,
    published_at {integer} NOT NULL,
    published_by {text} NOT NULL,
    yanked_at {integer},
    yanked_reason {text} NOT NULL,
    PRIMARY KEY (tenant, name, version)
){strict};

CREATE TABLE active_versions (
    tenant {text} NOT NULL,
    name {text} NOT NULL,
    version {text} NOT NULL,
    previous {text},
    updated_at {integer} NOT NULL,
    updated_by {text} NOT NULL,
    PRIMARY KEY (tenant, name)
){keyed};

CREATE TABLE rollouts (
    tenant {text} NOT NULL,
    rollout_id {text} NOT NULL,
    name {text} NOT NULL,
    state {text} NOT NULL,
    body {bytes} NOT NULL,
    updated_at {integer} NOT NULL,
    PRIMARY KEY (tenant, rollout_id)
){strict};

CREATE INDEX rollouts_by_time ON rollouts (updated_at, tenant, rollout_id);

CREATE TABLE wishes (
    tenant {text} NOT NULL,
    worker_id {text} NOT NULL,
    name {text} NOT NULL,
    version {text} NOT NULL,
    wish {text} NOT NULL,
    state {text} NOT NULL,
    why {text} NOT NULL,
    tries {integer} NOT NULL,
    error {bytes},
    updated_at {integer} NOT NULL,
    PRIMARY KEY (tenant, worker_id, name, version)
){strict};

CREATE INDEX wishes_by_time ON wishes (updated_at);

CREATE TABLE resources (
    tenant {text} NOT NULL,
    worker_id {text} NOT NULL,
    resource_id {text} NOT NULL,
    type {text} NOT NULL,
    state {text} NOT NULL,
    scope {text} NOT NULL,
    run_id {text},
    node_id {text},
    package {text} NOT NULL,
    size_bytes {integer},
    created_at {integer} NOT NULL,
    expires_at {integer},
    is_artifact {boolean} NOT NULL,
    metadata {bytes} NOT NULL,
    blob {text},
    PRIMARY KEY (tenant, worker_id, resource_id)
){strict};

CREATE INDEX resources_by_time ON resources (tenant, created_at, worker_id, resource_id);
CREATE INDEX resources_by_id ON resources (tenant, resource_id, worker_id);
CREATE INDEX resources_by_run ON resources (tenant, run_id, created_at, worker_id, resource_id);
CREATE INDEX resources_ended ON resources (coalesce(expires_at, created_at)) WHERE state IN ('evicted', 'released');
CREATE INDEX resources_with_copy ON resources (blob) WHERE blob IS NOT NULL;

CREATE TABLE affinities (
    tenant {text} NOT NULL,
    key {text} NOT NULL,
    worker_id {text} NOT NULL,
    acquired_at {integer} NOT NULL,
    expires_at {integer} NOT NULL,
    PRIMARY KEY (tenant, key)
){keyed};
