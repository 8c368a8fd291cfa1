-- Each query stands under its name. Rows travel as one array per column.

-- name: search_path
SELECT current_setting('search_path')

-- name: lock_schema
SELECT pg_advisory_xact_lock(4713218465381)

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS astraflow

-- name: has_migrations
SELECT to_regclass('astraflow.migrations') IS NOT NULL

-- name: count_tables
SELECT count(*) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'astraflow'

-- name: schema_version
SELECT version, software FROM migrations ORDER BY version DESC LIMIT 1

-- name: record_migration
INSERT INTO migrations (version, name, software) VALUES ($1, $2, $3)

-- name: claim
-- A claim is free when it has run out; or when the connection of its owner is gone and the owner has not come back with
-- another. Of a role that we may not look at we do not know when its connections began: then they count as there.
UPDATE shards AS s SET owner = $1, epoch = epoch + 1, commit_number = 0, writer = writer + 1,
    leased_until = clock_timestamp() + make_interval(secs => $2), renewed_at = clock_timestamp(),
    backend_epoch = epoch + 1, backend_pid = pg_backend_pid(),
    backend_start = (SELECT a.backend_start FROM pg_stat_activity AS a WHERE a.pid = pg_backend_pid())
WHERE shard = 0 AND (
    leased_until <= clock_timestamp() OR owner = $1 OR (
        backend_epoch = epoch AND backend_start IS NOT NULL
        AND renewed_at <= clock_timestamp() - make_interval(secs => $3)
        AND NOT EXISTS (
            SELECT 1 FROM pg_stat_activity AS a
            WHERE a.pid = s.backend_pid AND (a.backend_start IS NULL OR a.backend_start = s.backend_start)
        )
    )
)
RETURNING epoch, writer

-- name: owner
SELECT owner FROM shards WHERE shard = 0

-- name: held_by
SELECT owner FROM shards WHERE shard = 0 AND leased_until > clock_timestamp()

-- name: renew
UPDATE shards SET leased_until = clock_timestamp() + make_interval(secs => $2), renewed_at = clock_timestamp()
WHERE shard = 0 AND epoch = $1
RETURNING true

-- name: release
UPDATE shards SET leased_until = '-infinity' WHERE shard = 0 AND epoch = $1

-- name: take_writer
-- Waits for a transaction that is still under way, and shuts out every later one of the former connection.
UPDATE shards SET writer = writer + 1, backend_epoch = epoch, backend_pid = pg_backend_pid(),
    backend_start = (SELECT a.backend_start FROM pg_stat_activity AS a WHERE a.pid = pg_backend_pid())
WHERE shard = 0 AND epoch = $1 RETURNING writer

-- name: shard
SELECT epoch, commit_number FROM shards WHERE shard = 0

-- name: fence
SELECT true FROM shards WHERE shard = 0 AND epoch = $1 FOR UPDATE

-- name: commit
-- Everything hangs on the fence. A statement sees the tables as they were before it, its own rows not among them.
WITH fence AS (
    UPDATE shards SET commit_number = $2, held_bytes = held_bytes + $4
    WHERE shard = 0 AND epoch = $1 AND writer = $3 AND commit_number < $2
    RETURNING true
), new_pages AS (
    INSERT INTO pages
    SELECT p.* FROM fence, unnest($5::text[], $6::bigint[], $7::bigint[], $8::bytea[]) AS p
), changed_runs AS (
    UPDATE runs SET status = c.status, cancel_requested = c.cancel_requested,
        started_at = c.started_at, finished_at = c.finished_at, error = c.error
    FROM fence, unnest($9::text[], $10::text[], $11::boolean[], $12::bigint[], $13::bigint[], $14::bytea[])
        AS c (run_id, status, cancel_requested, started_at, finished_at, error)
    WHERE runs.run_id = c.run_id
    RETURNING true
), new_plans AS (
    INSERT INTO plans
    SELECT p.* FROM fence, unnest($15::text[], $16::bytea[], $17::bytea[]) AS p
    ON CONFLICT (plan_id) DO NOTHING
), new_runs AS (
    INSERT INTO runs
    SELECT r.* FROM fence, unnest(
        $18::text[], $19::text[], $20::text[], $21::bigint[], $22::text[], $23::text[], $24::text[], $25::boolean[],
        $26::bigint[], $27::bigint[], $28::bigint[], $29::bytea[], $30::text[], $31::text[], $32::text[]
    ) AS r
), new_submissions AS (
    INSERT INTO submissions
    SELECT s.* FROM fence, unnest($33::text[], $34::text[], $35::text[], $36::text[], $37::bigint[]) AS s
    ON CONFLICT (tenant, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, run_id = excluded.run_id, created_at = excluded.created_at
), put_workers AS (
    INSERT INTO workers
    SELECT w.* FROM fence, unnest(
        $38::text[], $39::text[], $40::text[], $41::text[], $42::bigint[], $43::text[], $44::text[], $45::bigint[],
        $46::bytea[], $47::bytea[], $48::text[], $49::bigint[], $50::bytea[]
    ) AS w
    ON CONFLICT (tenant, worker_id) DO UPDATE SET
        subject = excluded.subject, name = excluded.name, incarnation = excluded.incarnation,
        version = excluded.version, hostname = excluded.hostname, max_parallel = excluded.max_parallel,
        labels = excluded.labels, packages = excluded.packages, status = excluded.status,
        seen_at = excluded.seen_at, drain = excluded.drain
), new_events AS (
    INSERT INTO tenant_events
    SELECT e.* FROM fence, unnest($51::text[], $52::bigint[], $53::bigint[], $54::text[], $55::bytea[]) AS e
), new_audits AS (
    INSERT INTO audits (tenant, at, who, action, corr, code, detail)
    SELECT a.* FROM fence, unnest(
        $56::text[], $57::bigint[], $58::text[], $59::text[], $60::text[], $61::text[], $62::bytea[]
    ) AS a
), put_resources AS (
    INSERT INTO resources
    SELECT r.* FROM fence, unnest(
        $63::text[], $64::text[], $65::text[], $66::text[], $67::text[], $68::text[], $69::text[], $70::text[],
        $71::text[], $72::bigint[], $73::bigint[], $74::bigint[], $75::boolean[], $76::bytea[], $77::text[]
    ) AS r
    ON CONFLICT (tenant, worker_id, resource_id) DO UPDATE SET
        type = excluded.type, state = excluded.state, scope = excluded.scope, run_id = excluded.run_id,
        node_id = excluded.node_id, package = excluded.package, size_bytes = excluded.size_bytes,
        created_at = excluded.created_at, expires_at = excluded.expires_at, is_artifact = excluded.is_artifact,
        metadata = excluded.metadata, blob = coalesce(excluded.blob, resources.blob)
), resources_gone AS (
    DELETE FROM resources
    USING fence, unnest($78::text[], $79::text[], $80::text[]) AS g (tenant, worker_id, resource_id)
    WHERE resources.tenant = g.tenant AND resources.worker_id = g.worker_id AND resources.resource_id = g.resource_id
), put_affinities AS (
    INSERT INTO affinities
    SELECT a.* FROM fence, unnest($81::text[], $82::text[], $83::text[], $84::bigint[], $85::bigint[]) AS a
    ON CONFLICT (tenant, key) DO UPDATE SET
        worker_id = excluded.worker_id, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
), affinities_gone AS (
    DELETE FROM affinities USING fence, unnest($86::text[], $87::text[]) AS g (tenant, key)
    WHERE affinities.tenant = g.tenant AND affinities.key = g.key
), put_wishes AS (
    INSERT INTO wishes
    SELECT w.* FROM fence, unnest(
        $88::text[], $89::text[], $90::text[], $91::text[], $92::text[], $93::text[], $94::text[],
        $95::bigint[], $96::bytea[], $97::bigint[]
    ) AS w
    ON CONFLICT (tenant, worker_id, name, version) DO UPDATE SET
        wish = excluded.wish, state = excluded.state, why = excluded.why, tries = excluded.tries,
        error = excluded.error, updated_at = excluded.updated_at
), wishes_gone AS (
    DELETE FROM wishes
    USING fence, unnest($98::text[], $99::text[], $100::text[], $101::text[]) AS g (tenant, worker_id, name, version)
    WHERE wishes.tenant = g.tenant AND wishes.worker_id = g.worker_id
        AND wishes.name = g.name AND wishes.version = g.version
), workers_gone AS (
    DELETE FROM workers USING fence, unnest($102::text[], $103::text[]) AS g (tenant, worker_id)
    WHERE workers.tenant = g.tenant AND workers.worker_id = g.worker_id
)
SELECT CASE
    WHEN count(*) = 0 THEN false
    WHEN (SELECT count(*) FROM changed_runs) = cardinality($9::text[]) THEN true
    ELSE refuse('a run that is changed does not exist')
END FROM fence

-- name: create_workflow
INSERT INTO workflows VALUES ($1, $2, 1, $3) ON CONFLICT (tenant, workflow_id) DO NOTHING RETURNING true

-- name: follow_workflow
UPDATE workflows SET version = $3, updated_at = $4
WHERE tenant = $1 AND workflow_id = $2 AND version = $3 - 1 RETURNING true

-- name: insert_workflow_version
INSERT INTO workflow_versions VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: delete_workflow_versions
DELETE FROM workflow_versions WHERE tenant = $1 AND workflow_id = $2 AND version <= $3

-- name: delete_workflow
DELETE FROM workflows WHERE tenant = $1 AND workflow_id = $2 RETURNING true

-- name: active_runs
SELECT * FROM runs WHERE finished_at IS NULL ORDER BY created_at, run_id

-- name: find_run
SELECT * FROM runs WHERE run_id = $1 AND tenant = $2

-- name: list_runs
SELECT * FROM runs WHERE tenant = $1 AND (created_at, run_id) < ($2, $3)
ORDER BY created_at DESC, run_id DESC LIMIT $4

-- name: list_runs_by_status
SELECT * FROM runs WHERE tenant = $1 AND status = $5 AND (created_at, run_id) < ($2, $3)
ORDER BY created_at DESC, run_id DESC LIMIT $4

-- name: list_runs_by_workflow
SELECT * FROM runs WHERE tenant = $1 AND workflow_id = $5 AND (created_at, run_id) < ($2, $3)
ORDER BY created_at DESC, run_id DESC LIMIT $4

-- name: list_runs_by_both
SELECT * FROM runs
WHERE tenant = $1 AND status = $5 AND workflow_id = $6 AND (created_at, run_id) < ($2, $3)
ORDER BY created_at DESC, run_id DESC LIMIT $4

-- name: find_plan
SELECT * FROM plans WHERE plan_id = $1

-- name: read_pages
SELECT run_id, first, last, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY last) AS upto, row_number() OVER (ORDER BY last) AS place
    FROM (SELECT * FROM pages WHERE run_id = $1 AND last > $2 ORDER BY last LIMIT $4) AS following
) AS counted
WHERE upto <= $3 OR place = 1 ORDER BY last

-- name: find_submission
SELECT * FROM submissions WHERE tenant = $1 AND key = $2

-- name: submissions
SELECT * FROM submissions WHERE created_at >= $1 ORDER BY created_at, tenant, key

-- name: workers
SELECT * FROM workers ORDER BY tenant, worker_id

-- name: find_workflow
SELECT v.* FROM workflows AS w JOIN workflow_versions AS v USING (tenant, workflow_id, version)
WHERE w.tenant = $1 AND w.workflow_id = $2

-- name: find_workflow_version
SELECT * FROM workflow_versions WHERE tenant = $1 AND workflow_id = $2 AND version = $3

-- name: list_workflows
SELECT v.* FROM workflows AS w JOIN workflow_versions AS v USING (tenant, workflow_id, version)
WHERE w.tenant = $1 AND (w.updated_at, w.workflow_id) < ($2, $3)
ORDER BY w.updated_at DESC, w.workflow_id DESC LIMIT $4

-- name: event_heads
-- One step of the index per tenant, not per event.
WITH RECURSIVE known (tenant) AS (
    SELECT min(tenant) FROM tenant_events
    UNION ALL
    SELECT (SELECT min(e.tenant) FROM tenant_events AS e WHERE e.tenant > known.tenant)
    FROM known WHERE known.tenant IS NOT NULL
)
SELECT tenant, (SELECT max(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant)
FROM known WHERE tenant IS NOT NULL ORDER BY tenant

-- name: tenant_events
SELECT * FROM tenant_events WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3

-- name: audit
SELECT * FROM audits WHERE tenant = $1 AND number < $2 ORDER BY number DESC LIMIT $3

-- name: usage
SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM runs WHERE finished_at IS NULL),
    (SELECT max(version) FROM migrations)

-- name: count_finished_runs
SELECT count(*) FROM runs WHERE finished_at IS NOT NULL

-- name: held_bytes
SELECT (SELECT held_bytes FROM shards WHERE shard = 0)
    + (SELECT coalesce(sum(octet_length(definition) + octet_length(plan)), 0) FROM plans)::bigint
    + (SELECT coalesce(sum(octet_length(definition)), 0) FROM workflow_versions)::bigint

-- name: oldest_finished
SELECT run_id, plan_id, finished_at,
    (SELECT coalesce(sum(octet_length(body)), 0) FROM pages WHERE pages.run_id = runs.run_id)
FROM runs WHERE finished_at IS NOT NULL ORDER BY finished_at, run_id LIMIT $1

-- name: delete_runs
WITH gone AS (
    DELETE FROM runs WHERE run_id = ANY($1::text[]) AND finished_at IS NOT NULL RETURNING run_id
), doomed AS (
    INSERT INTO doomed_runs SELECT run_id FROM gone ON CONFLICT DO NOTHING
)
SELECT count(*) FROM gone

-- name: delete_unused_plans
DELETE FROM plans
WHERE plan_id = ANY($1::text[]) AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan_id = plans.plan_id)

-- name: delete_doomed_pages
WITH counted AS (
    SELECT run_id, last, sum(octet_length(body)) OVER (ORDER BY run_id, last) - octet_length(body) AS ahead
    FROM doomed_runs JOIN pages USING (run_id)
), gone AS (
    DELETE FROM pages USING counted
    WHERE counted.ahead < $1 AND pages.run_id = counted.run_id AND pages.last = counted.last
    RETURNING octet_length(body) AS size
), counter AS (
    UPDATE shards SET held_bytes = held_bytes - (SELECT coalesce(sum(size), 0) FROM gone) WHERE shard = 0
)
SELECT count(*) > (SELECT count(*) FROM gone) FROM counted

-- name: forget_doomed
DELETE FROM doomed_runs WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.run_id = doomed_runs.run_id)

-- name: delete_events
-- The last one of each tenant stays: it says where the numbers go on. From the front of each stream (P17).
WITH old AS (
    SELECT tenant, max(number) AS number FROM (
        SELECT tenant, number FROM tenant_events AS e
        WHERE at < $1
            AND number < (SELECT max(h.number) FROM tenant_events AS h WHERE h.tenant = e.tenant)
        ORDER BY at LIMIT $2
    ) AS oldest GROUP BY tenant
), gone AS (
    DELETE FROM tenant_events AS e USING old WHERE e.tenant = old.tenant AND e.number <= old.number
    RETURNING true
)
SELECT count(*) FROM gone

-- name: delete_audits
WITH gone AS (
    DELETE FROM audits
    WHERE number IN (SELECT number FROM audits ORDER BY number LIMIT $2) AND at < $1
    RETURNING true
)
SELECT count(*) FROM gone

-- name: event_spans
-- The first and the last number of each tenant; one step of the index per tenant, not per event.
WITH RECURSIVE known (tenant) AS (
    SELECT min(tenant) FROM tenant_events
    UNION ALL
    SELECT (SELECT min(e.tenant) FROM tenant_events AS e WHERE e.tenant > known.tenant)
    FROM known WHERE known.tenant IS NOT NULL
)
SELECT tenant, (SELECT min(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant),
    (SELECT max(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant)
FROM known WHERE tenant IS NOT NULL ORDER BY tenant

-- name: trim_events
WITH gone AS (
    DELETE FROM tenant_events WHERE tenant = $1 AND number <= $2 RETURNING true
)
SELECT count(*) FROM gone

-- name: trim_audits
WITH gone AS (
    DELETE FROM audits WHERE number IN (
        SELECT number FROM audits WHERE number <= (SELECT max(number) FROM audits) - $1 ORDER BY number LIMIT $2
    ) RETURNING true
)
SELECT count(*) FROM gone

-- name: delete_submissions
WITH gone AS (
    DELETE FROM submissions WHERE (tenant, key) IN (
        SELECT tenant, key FROM submissions WHERE created_at < $1 ORDER BY created_at LIMIT $2
    ) RETURNING true
)
SELECT count(*) FROM gone

-- name: set_resource_blob
UPDATE resources SET blob = $4 WHERE tenant = $1 AND worker_id = $2 AND resource_id = $3 RETURNING true

-- name: insert_package
INSERT INTO packages VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (tenant, name, version) DO NOTHING RETURNING true

-- name: yank_package
UPDATE packages SET yanked_at = $4, yanked_reason = $5 WHERE tenant = $1 AND name = $2 AND version = $3 RETURNING true

-- name: put_active
INSERT INTO active_versions VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, name) DO UPDATE SET
    version = excluded.version, previous = excluded.previous,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by

-- name: put_rollout
INSERT INTO rollouts VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, rollout_id) DO UPDATE SET
    name = excluded.name, state = excluded.state, body = excluded.body, updated_at = excluded.updated_at

-- name: packages
SELECT * FROM packages ORDER BY tenant, name, version

-- name: packages_of_tenant
SELECT * FROM packages WHERE tenant = $1 ORDER BY name, version

-- name: find_package
SELECT * FROM packages WHERE tenant = $1 AND name = $2 AND version = $3

-- name: active_versions
SELECT * FROM active_versions ORDER BY tenant, name

-- name: rollouts
SELECT * FROM rollouts ORDER BY updated_at, tenant, rollout_id

-- name: find_rollout
SELECT * FROM rollouts WHERE tenant = $1 AND rollout_id = $2

-- name: wishes
SELECT * FROM wishes ORDER BY tenant, worker_id, name, version

-- name: affinities
SELECT * FROM affinities ORDER BY tenant, key

-- name: all_resources
SELECT * FROM resources ORDER BY tenant DESC, created_at DESC, worker_id DESC, resource_id DESC LIMIT $1

-- name: list_resources
SELECT * FROM resources
WHERE tenant = $1 AND (created_at, worker_id, resource_id) < ($2, $3, $4)
    AND ($6::text IS NULL OR worker_id = $6) AND ($7::text IS NULL OR type = $7)
    AND ($8::text IS NULL OR state = $8)
ORDER BY created_at DESC, worker_id DESC, resource_id DESC LIMIT $5

-- name: list_resources_of_run
SELECT * FROM resources
WHERE tenant = $1 AND run_id = $9 AND (created_at, worker_id, resource_id) < ($2, $3, $4)
    AND ($6::text IS NULL OR worker_id = $6) AND ($7::text IS NULL OR type = $7) AND ($8::text IS NULL OR state = $8)
ORDER BY created_at DESC, worker_id DESC, resource_id DESC LIMIT $5

-- name: find_resources
SELECT * FROM resources WHERE tenant = $1 AND resource_id = $2 ORDER BY worker_id

-- name: find_resource
SELECT * FROM resources WHERE tenant = $1 AND worker_id = $2 AND resource_id = $3

-- name: blobs_of_resources
SELECT blob FROM resources WHERE blob IS NOT NULL

-- name: delete_ended_resources
-- $1: when those without a copy are old, $2: when those with one are.
WITH gone AS (
    DELETE FROM resources WHERE (tenant, worker_id, resource_id) IN (
        SELECT tenant, worker_id, resource_id FROM resources
        WHERE state IN ('evicted', 'released')
            AND coalesce(expires_at, created_at) < $1::bigint
            AND (blob IS NULL OR coalesce(expires_at, created_at) < $2::bigint)
        LIMIT $3
    ) RETURNING true
)
SELECT count(*) FROM gone

-- name: delete_ended_wishes
WITH gone AS (
    DELETE FROM wishes WHERE (tenant, worker_id, name, version) IN (
        SELECT tenant, worker_id, name, version FROM wishes AS w
        WHERE updated_at < $1 AND state IN ('installed', 'failed', 'removed') AND NOT EXISTS (
            SELECT 1 FROM workers WHERE workers.tenant = w.tenant AND workers.worker_id = w.worker_id
        ) LIMIT $2
    ) RETURNING true
)
SELECT count(*) FROM gone

-- name: delete_ended_rollouts
WITH gone AS (
    DELETE FROM rollouts WHERE (tenant, rollout_id) IN (
        SELECT tenant, rollout_id FROM rollouts
        WHERE updated_at < $1 AND state IN ('succeeded', 'failed', 'rolled_back') LIMIT $2
    ) RETURNING true
)
SELECT count(*) FROM gone

-- name: find_site
SELECT value FROM site WHERE name = $1

-- name: put_site
INSERT INTO site VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING true
