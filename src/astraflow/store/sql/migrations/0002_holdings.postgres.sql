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
