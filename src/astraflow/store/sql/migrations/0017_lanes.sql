-- A tenant may have several lanes. What an engine keeps of a tenant for itself alone (its workers as it knows them, the
-- numbers of its stream of events) is stored under the name of the lane: the tenant, or `tenant/2`.
ALTER TABLE lanes ADD COLUMN name {text} NOT NULL DEFAULT '';
ALTER TABLE lanes ADD COLUMN state {text} NOT NULL DEFAULT 'open';
UPDATE lanes SET name = tenant;
CREATE UNIQUE INDEX lanes_by_name ON lanes (name);

ALTER TABLE resources ADD COLUMN lane {integer} NOT NULL DEFAULT 0;
ALTER TABLE submissions ADD COLUMN lane {integer} NOT NULL DEFAULT 0;

-- Which lane an idempotency key belongs to, where there are several: written before its run is accepted.
CREATE TABLE lane_keys (
    tenant {text} NOT NULL,
    key {text} NOT NULL,
    lane {integer} NOT NULL,
    fingerprint {text} NOT NULL,
    created_at {integer} NOT NULL,
    PRIMARY KEY (tenant, key)
){keyed};

CREATE INDEX lane_keys_by_time ON lane_keys (created_at, tenant, key);

-- Packages that tasks of other lanes wait for: the home lane has them installed, or says why that is not possible.
CREATE TABLE lane_wants (
    tenant {text} NOT NULL,
    name {text} NOT NULL,
    version {text} NOT NULL,
    wanted_at {integer} NOT NULL,
    problem {bytes},
    PRIMARY KEY (tenant, name, version)
){keyed};
