CREATE TABLE shards (
    shard INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    commit_number INTEGER NOT NULL
) STRICT;

INSERT INTO shards (shard, owner, epoch, commit_number) VALUES (0, '', 0, 0);

CREATE TABLE pages (
    run_id TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX pages_by_run ON pages (run_id, last);

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
