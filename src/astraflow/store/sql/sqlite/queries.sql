-- Each query stands under its name. Parameters by position, in the order of the fields of a row.

-- name: use_wal
PRAGMA journal_mode = WAL

-- name: use_auto_vacuum
PRAGMA auto_vacuum = INCREMENTAL

-- name: flush_every_commit
PRAGMA synchronous = FULL

-- name: checkpoint_by_hand
PRAGMA wal_autocheckpoint = 0

-- name: checkpoint
-- Copies what it can without waiting for anybody.
PRAGMA wal_checkpoint(PASSIVE)

-- name: enforce_references
PRAGMA foreign_keys = ON

-- name: only_read
PRAGMA query_only = ON

-- name: mark_as_ours
PRAGMA application_id = 1098085446

-- name: application_id
PRAGMA application_id

-- name: schema_version
PRAGMA user_version

-- name: schema_writer
SELECT software FROM migrations ORDER BY version DESC LIMIT 1

-- name: check_pages
PRAGMA integrity_check(100)

-- name: check_references
PRAGMA foreign_key_check

-- name: record_migration
INSERT INTO migrations (version, name, software) VALUES (?, ?, ?)

-- name: count_tables
SELECT count(*) FROM sqlite_schema

-- name: page_size
PRAGMA page_size

-- name: page_count
PRAGMA page_count

-- name: free_pages
PRAGMA freelist_count

-- name: give_pages_back
PRAGMA incremental_vacuum(1024)

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: claim
UPDATE shards SET owner = ?, epoch = epoch + 1, commit_number = 0 WHERE shard = 0 RETURNING epoch

-- name: release
UPDATE shards SET owner = '' WHERE shard = 0 AND epoch = ?

-- name: shard
SELECT epoch, commit_number FROM shards WHERE shard = 0

-- name: fence_commit
UPDATE shards SET commit_number = ?1 WHERE shard = 0 AND epoch = ?2 AND commit_number < ?1

-- name: insert_plan
INSERT INTO plans VALUES (?, ?, ?) ON CONFLICT (plan_id) DO NOTHING

-- name: insert_run
INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: change_run
UPDATE runs SET status = ?2, cancel_requested = ?3, started_at = ?4, finished_at = ?5, error = ?6
WHERE run_id = ?1

-- name: put_submission
INSERT INTO submissions VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, run_id = excluded.run_id, created_at = excluded.created_at

-- name: insert_page
INSERT INTO pages VALUES (?, ?, ?, ?)

-- name: put_worker
INSERT INTO workers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, worker_id) DO UPDATE SET
    subject = excluded.subject, name = excluded.name, incarnation = excluded.incarnation,
    version = excluded.version, hostname = excluded.hostname, max_parallel = excluded.max_parallel,
    labels = excluded.labels, packages = excluded.packages, status = excluded.status,
    seen_at = excluded.seen_at, drain = excluded.drain

-- name: delete_worker
DELETE FROM workers WHERE tenant = ? AND worker_id = ?

-- name: insert_event
INSERT INTO tenant_events VALUES (?, ?, ?, ?, ?)

-- name: insert_audit
INSERT INTO audits (tenant, at, who, action, corr, code, detail) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: create_workflow
INSERT INTO workflows VALUES (?, ?, 1, ?) ON CONFLICT (tenant, workflow_id) DO NOTHING

-- name: follow_workflow
UPDATE workflows SET version = ?3, updated_at = ?4
WHERE tenant = ?1 AND workflow_id = ?2 AND version = ?3 - 1

-- name: insert_workflow_version
INSERT INTO workflow_versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: delete_workflow_versions
DELETE FROM workflow_versions WHERE tenant = ? AND workflow_id = ? AND version <= ?

-- name: delete_workflow
DELETE FROM workflows WHERE tenant = ? AND workflow_id = ?

-- name: active_runs
SELECT * FROM runs WHERE finished_at IS NULL ORDER BY created_at, run_id

-- name: find_run
SELECT * FROM runs WHERE run_id = ? AND tenant = ?

-- name: list_runs
SELECT * FROM runs WHERE tenant = ?1 AND (created_at, run_id) < (?2, ?3)
ORDER BY created_at DESC, run_id DESC LIMIT ?4

-- name: list_runs_by_status
SELECT * FROM runs WHERE tenant = ?1 AND status = ?5 AND (created_at, run_id) < (?2, ?3)
ORDER BY created_at DESC, run_id DESC LIMIT ?4

-- name: list_runs_by_workflow
SELECT * FROM runs WHERE tenant = ?1 AND workflow_id = ?5 AND (created_at, run_id) < (?2, ?3)
ORDER BY created_at DESC, run_id DESC LIMIT ?4

-- name: list_runs_by_both
SELECT * FROM runs
WHERE tenant = ?1 AND status = ?5 AND workflow_id = ?6 AND (created_at, run_id) < (?2, ?3)
ORDER BY created_at DESC, run_id DESC LIMIT ?4

-- name: find_plan
SELECT * FROM plans WHERE plan_id = ?

-- name: read_pages
SELECT * FROM pages WHERE run_id = ? AND last > ? ORDER BY last

-- name: find_submission
SELECT * FROM submissions WHERE tenant = ? AND key = ?

-- name: submissions
SELECT * FROM submissions WHERE created_at >= ? ORDER BY created_at, tenant, key

-- name: workers
SELECT * FROM workers ORDER BY tenant, worker_id

-- name: find_workflow
SELECT v.* FROM workflows AS w JOIN workflow_versions AS v USING (tenant, workflow_id, version)
WHERE w.tenant = ? AND w.workflow_id = ?

-- name: find_workflow_version
SELECT * FROM workflow_versions WHERE tenant = ? AND workflow_id = ? AND version = ?

-- name: list_workflows
SELECT v.* FROM workflows AS w JOIN workflow_versions AS v USING (tenant, workflow_id, version)
WHERE w.tenant = ?1 AND (w.updated_at, w.workflow_id) < (?2, ?3)
ORDER BY w.updated_at DESC, w.workflow_id DESC LIMIT ?4

-- name: event_heads
-- One step of the index per tenant, not per event.
WITH RECURSIVE known (tenant) AS (
    SELECT min(tenant) FROM tenant_events
    UNION ALL
    SELECT (SELECT min(e.tenant) FROM tenant_events AS e WHERE e.tenant > known.tenant)
    FROM known WHERE known.tenant IS NOT NULL
)
SELECT tenant, (SELECT max(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant)
FROM known WHERE tenant IS NOT NULL

-- name: tenant_events
SELECT * FROM tenant_events WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?

-- name: audit
SELECT * FROM audits WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?

-- name: count_runs
SELECT count(*) FROM runs

-- name: count_active_runs
SELECT count(*) FROM runs WHERE finished_at IS NULL

-- name: count_finished_runs
SELECT count(*) FROM runs WHERE finished_at IS NOT NULL

-- name: oldest_finished
SELECT run_id, plan_id, finished_at,
    (SELECT coalesce(sum(length(body)), 0) FROM pages WHERE pages.run_id = runs.run_id)
FROM runs WHERE finished_at IS NOT NULL ORDER BY finished_at, run_id LIMIT ?

-- name: delete_run
DELETE FROM runs WHERE run_id = ? AND finished_at IS NOT NULL

-- name: doom_run
INSERT INTO doomed_runs VALUES (?) ON CONFLICT DO NOTHING

-- name: delete_unused_plan
DELETE FROM plans
WHERE plan_id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan_id = ?1)

-- name: doomed_pages
SELECT p.rowid, length(p.body) FROM doomed_runs AS d JOIN pages AS p USING (run_id)

-- name: delete_page
DELETE FROM pages WHERE rowid = ?

-- name: forget_doomed
DELETE FROM doomed_runs WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.run_id = doomed_runs.run_id)

-- name: old_events
-- The last one of each tenant stays: it says where the numbers go on.
SELECT tenant, max(number) FROM (
    SELECT tenant, number FROM tenant_events AS e
    WHERE at < ?1 AND number < (SELECT max(h.number) FROM tenant_events AS h WHERE h.tenant = e.tenant)
    ORDER BY at LIMIT ?2
) GROUP BY tenant

-- name: delete_events
DELETE FROM tenant_events WHERE tenant = ? AND number <= ?

-- name: delete_audits
DELETE FROM audits
WHERE number IN (SELECT number FROM audits ORDER BY number LIMIT ?1) AND at < ?2

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
FROM known WHERE tenant IS NOT NULL

-- name: count_audits
SELECT coalesce((SELECT max(number) FROM audits) - (SELECT min(number) FROM audits) + 1, 0)

-- name: trim_audits
DELETE FROM audits WHERE number IN (
    SELECT number FROM audits WHERE number <= (SELECT max(number) FROM audits) - ?1 ORDER BY number LIMIT ?2
)

-- name: delete_submissions
DELETE FROM submissions WHERE (tenant, key) IN (
    SELECT tenant, key FROM submissions WHERE created_at < ?1 ORDER BY created_at LIMIT ?2
)

-- name: put_resource
-- A row that is put without a copy keeps the one that is stored: who holds a resource does not know its copies.
INSERT INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, worker_id, resource_id) DO UPDATE SET
    type = excluded.type, state = excluded.state, scope = excluded.scope, run_id = excluded.run_id,
    node_id = excluded.node_id, package = excluded.package, size_bytes = excluded.size_bytes,
    created_at = excluded.created_at, expires_at = excluded.expires_at, is_artifact = excluded.is_artifact,
    metadata = excluded.metadata, blob = coalesce(excluded.blob, resources.blob)

-- name: delete_resource
DELETE FROM resources WHERE tenant = ? AND worker_id = ? AND resource_id = ?

-- name: set_resource_blob
UPDATE resources SET blob = ?4 WHERE tenant = ?1 AND worker_id = ?2 AND resource_id = ?3

-- name: put_affinity
INSERT OR REPLACE INTO affinities VALUES (?, ?, ?, ?, ?)

-- name: delete_affinity
DELETE FROM affinities WHERE tenant = ? AND key = ?

-- name: put_wish
INSERT OR REPLACE INTO wishes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: delete_wish
DELETE FROM wishes WHERE tenant = ? AND worker_id = ? AND name = ? AND version = ?

-- name: insert_package
INSERT INTO packages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, name, version) DO NOTHING

-- name: yank_package
UPDATE packages SET yanked_at = ?4, yanked_reason = ?5 WHERE tenant = ?1 AND name = ?2 AND version = ?3

-- name: put_active
INSERT OR REPLACE INTO active_versions VALUES (?, ?, ?, ?, ?, ?)

-- name: put_rollout
INSERT OR REPLACE INTO rollouts VALUES (?, ?, ?, ?, ?, ?)

-- name: packages
SELECT * FROM packages ORDER BY tenant, name, version

-- name: packages_of_tenant
SELECT * FROM packages WHERE tenant = ? ORDER BY name, version

-- name: find_package
SELECT * FROM packages WHERE tenant = ? AND name = ? AND version = ?

-- name: active_versions
SELECT * FROM active_versions ORDER BY tenant, name

-- name: rollouts
SELECT * FROM rollouts ORDER BY updated_at, tenant, rollout_id

-- name: find_rollout
SELECT * FROM rollouts WHERE tenant = ? AND rollout_id = ?

-- name: wishes
SELECT * FROM wishes ORDER BY tenant, worker_id, name, version

-- name: affinities
SELECT * FROM affinities ORDER BY tenant, key

-- name: all_resources
SELECT * FROM resources ORDER BY tenant DESC, created_at DESC, worker_id DESC, resource_id DESC LIMIT ?

-- name: list_resources
SELECT * FROM resources
WHERE tenant = ?1 AND (created_at, worker_id, resource_id) < (?2, ?3, ?4)
    AND (?6 IS NULL OR worker_id = ?6) AND (?7 IS NULL OR type = ?7) AND (?8 IS NULL OR state = ?8)
ORDER BY created_at DESC, worker_id DESC, resource_id DESC LIMIT ?5

-- name: list_resources_of_run
SELECT * FROM resources
WHERE tenant = ?1 AND run_id = ?9 AND (created_at, worker_id, resource_id) < (?2, ?3, ?4)
    AND (?6 IS NULL OR worker_id = ?6) AND (?7 IS NULL OR type = ?7) AND (?8 IS NULL OR state = ?8)
ORDER BY created_at DESC, worker_id DESC, resource_id DESC LIMIT ?5

-- name: find_resources
SELECT * FROM resources WHERE tenant = ? AND resource_id = ? ORDER BY worker_id

-- name: find_resource
SELECT * FROM resources WHERE tenant = ? AND worker_id = ? AND resource_id = ?

-- name: blobs_of_resources
SELECT blob FROM resources WHERE blob IS NOT NULL

-- name: delete_ended_resources
-- ?1: when those without a copy are old, ?2: when those with one are.
DELETE FROM resources WHERE (tenant, worker_id, resource_id) IN (
    SELECT tenant, worker_id, resource_id FROM resources
    WHERE state IN ('evicted', 'released')
        AND coalesce(expires_at, created_at) < ?1
        AND (blob IS NULL OR coalesce(expires_at, created_at) < ?2)
    LIMIT ?3
)

-- name: delete_ended_wishes
DELETE FROM wishes WHERE (tenant, worker_id, name, version) IN (
    SELECT tenant, worker_id, name, version FROM wishes AS w
    WHERE updated_at < ?1 AND state IN ('installed', 'failed', 'removed') AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.tenant = w.tenant AND workers.worker_id = w.worker_id
    ) LIMIT ?2
)

-- name: delete_ended_rollouts
DELETE FROM rollouts WHERE (tenant, rollout_id) IN (
    SELECT tenant, rollout_id FROM rollouts
    WHERE updated_at < ?1 AND state IN ('succeeded', 'failed', 'rolled_back') LIMIT ?2
)

-- name: owner
SELECT owner FROM shards WHERE shard = 0

-- name: find_site
SELECT value FROM site WHERE name = ?

-- name: put_site
INSERT OR REPLACE INTO site VALUES (?, ?)
