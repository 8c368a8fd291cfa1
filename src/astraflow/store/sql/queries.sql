-- The queries of both databases, each under its name. `statements.py` explains :name, (:names[]), {RunRow} and {STATES}.

-- name: record_migration
INSERT INTO migrations (version, name, software) VALUES (:version, :name, :software)

-- name: schema_writer
SELECT version, software FROM migrations ORDER BY version DESC LIMIT 1

-- name: record_readable
UPDATE migrations SET readable_by = :readable_by WHERE version = :version

-- name: count_unreadable
-- Migrations beyond a schema that its software cannot work with.
SELECT count(*) FROM migrations WHERE version > :version AND coalesce(readable_by, version) > :version

-- name: all_epochs
SELECT shard, epoch FROM shards

-- name: site_values
SELECT name, value FROM site WHERE name IN (:names[])

-- name: raise_written_facts
-- It never falls.
UPDATE site SET value = CAST(CAST(:facts_version AS bigint) AS text)
WHERE name = 'facts_version' AND CAST(value AS bigint) < :facts_version

-- name: raise_attempt_floors
UPDATE runs SET attempt_floor = :floor WHERE status IN ({ACTIVE_RUNS})

-- name: owner
SELECT owner FROM shards WHERE shard = :shard

-- name: shard
SELECT epoch, commit_number FROM shards WHERE shard = :shard

-- Many of these are of one shard: of the tenants whose home, lane 0, is there, or of the lanes that are. A lane without a
-- row is in shard 0. What an engine keeps for itself is stored under the name of its lane.

-- name: active_runs
SELECT {RunRow} FROM runs WHERE status IN ({ACTIVE_RUNS})
    AND coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = runs.tenant AND l.lane = runs.lane), 0) = :shard
ORDER BY created_at, run_id

-- name: find_run
SELECT {RunRow} FROM runs WHERE run_id = :run_id AND tenant = :tenant

-- name: list_runs
SELECT {RunRow} FROM runs WHERE tenant = :tenant AND (created_at, run_id) < (:before_at, :before_id)
ORDER BY created_at DESC, run_id DESC LIMIT :limit

-- name: list_runs_by_status
SELECT {RunRow} FROM runs
WHERE tenant = :tenant AND status = :status AND (created_at, run_id) < (:before_at, :before_id)
ORDER BY created_at DESC, run_id DESC LIMIT :limit

-- name: list_runs_by_workflow
SELECT {RunRow} FROM runs
WHERE tenant = :tenant AND workflow_id = :workflow_id AND (created_at, run_id) < (:before_at, :before_id)
ORDER BY created_at DESC, run_id DESC LIMIT :limit

-- name: list_runs_by_both
SELECT {RunRow} FROM runs
WHERE tenant = :tenant AND status = :status AND workflow_id = :workflow_id
    AND (created_at, run_id) < (:before_at, :before_id)
ORDER BY created_at DESC, run_id DESC LIMIT :limit

-- name: list_runs_by_filter
-- An empty text and the pattern '%' leave out nothing.
SELECT {RunRow} FROM runs
WHERE tenant = :tenant AND (created_at, run_id) < (:before_at, :before_id) AND created_at >= :since
    AND created_at < :until AND (:status = '' OR status = :status)
    AND (:workflow_id = '' OR workflow_id = :workflow_id) AND (:trigger = '' OR trigger_name = :trigger)
    AND (:submitted_by = '' OR submitted_by = :submitted_by)
    AND (lower(name) LIKE :pattern ESCAPE '!' OR lower(run_id) LIKE :pattern ESCAPE '!')
ORDER BY created_at DESC, run_id DESC LIMIT :limit

-- name: find_plan
SELECT {PlanRow} FROM plans WHERE plan_id = :plan_id

-- name: find_submission
SELECT {SubmissionRow} FROM submissions WHERE tenant = :tenant AND key = :key

-- name: submissions
SELECT {SubmissionRow} FROM submissions WHERE created_at >= :since
    AND coalesce(
        (SELECT l.shard FROM lanes AS l WHERE l.tenant = submissions.tenant AND l.lane = submissions.lane), 0
    ) = :shard
ORDER BY created_at, tenant, key

-- name: workers
SELECT {WorkerRow} FROM workers
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.name = workers.tenant), 0) = :shard
ORDER BY tenant, worker_id

-- name: pools
SELECT {PoolRow} FROM pools
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = pools.tenant AND l.lane = 0), 0) = :shard
ORDER BY tenant, name

-- name: affinities
SELECT {AffinityRow} FROM affinities
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = affinities.tenant AND l.lane = 0), 0) = :shard
ORDER BY tenant, key

-- name: intents
SELECT {InstallIntentRow} FROM install_intents
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = install_intents.tenant AND l.lane = 0), 0) = :shard
ORDER BY tenant, worker_id, name, version

-- name: create_workflow
INSERT INTO workflows (tenant, workflow_id, version, updated_at) VALUES (:tenant, :workflow_id, :version, :updated_at)
ON CONFLICT (tenant, workflow_id) DO NOTHING

-- name: follow_workflow
UPDATE workflows SET version = :version, updated_at = :updated_at
WHERE tenant = :tenant AND workflow_id = :workflow_id AND version = :version - 1

-- name: delete_workflow_versions
DELETE FROM workflow_versions WHERE tenant = :tenant AND workflow_id = :workflow_id AND version <= :last

-- name: delete_workflow
DELETE FROM workflows WHERE tenant = :tenant AND workflow_id = :workflow_id

-- name: find_workflow
SELECT {v.WorkflowRow} FROM workflows AS w JOIN workflow_versions AS v USING (tenant, workflow_id, version)
WHERE w.tenant = :tenant AND w.workflow_id = :workflow_id

-- name: find_workflow_version
SELECT {WorkflowRow} FROM workflow_versions
WHERE tenant = :tenant AND workflow_id = :workflow_id AND version = :version

-- name: list_workflows
SELECT {v.WorkflowRow} FROM workflows AS w JOIN workflow_versions AS v USING (tenant, workflow_id, version)
WHERE w.tenant = :tenant AND (w.updated_at, w.workflow_id) < (:before_at, :before_id)
    AND (lower(v.name) LIKE :pattern ESCAPE '!' OR lower(w.workflow_id) LIKE :pattern ESCAPE '!')
ORDER BY w.updated_at DESC, w.workflow_id DESC LIMIT :limit

-- name: list_versions
SELECT {VersionRow} FROM workflow_versions
WHERE tenant = :tenant AND workflow_id = :workflow_id AND version < :before ORDER BY version DESC LIMIT :limit

-- name: find_draft
SELECT {DraftRow} FROM workflow_drafts WHERE tenant = :tenant AND workflow_id = :workflow_id

-- name: draft_revision
SELECT revision FROM workflow_drafts WHERE tenant = :tenant AND workflow_id = :workflow_id

-- name: list_drafts
SELECT {DraftRow} FROM workflow_drafts WHERE tenant = :tenant AND (updated_at, workflow_id) < (:before_at, :before_id)
ORDER BY updated_at DESC, workflow_id DESC LIMIT :limit

-- name: list_pins
SELECT {PinnedResultRow} FROM pinned_results WHERE tenant = :tenant AND workflow_id = :workflow_id ORDER BY node_id

-- name: delete_pin
DELETE FROM pinned_results WHERE tenant = :tenant AND workflow_id = :workflow_id AND node_id = :node_id

-- name: delete_pins
DELETE FROM pinned_results WHERE tenant = :tenant AND workflow_id = :workflow_id

-- name: delete_draft
DELETE FROM workflow_drafts WHERE tenant = :tenant AND workflow_id = :workflow_id
    AND (CAST(:revision AS bigint) IS NULL OR revision = :revision)

-- name: triggers
SELECT {TriggerRow} FROM triggers
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = triggers.tenant AND l.lane = 0), 0) = :shard
ORDER BY tenant, workflow_id, name

-- name: delete_trigger
DELETE FROM triggers WHERE tenant = :tenant AND workflow_id = :workflow_id AND name = :name

-- name: trigger_fires
SELECT {TriggerFireRow} FROM trigger_fires
WHERE tenant = :tenant AND workflow_id = :workflow_id AND name = :name AND number < :before
ORDER BY number DESC LIMIT :limit

-- name: find_trigger_fire
SELECT {TriggerFireRow} FROM trigger_fires
WHERE tenant = :tenant AND workflow_id = :workflow_id AND name = :name AND slot = :slot
ORDER BY number DESC LIMIT 1

-- name: delete_trigger_fires
DELETE FROM trigger_fires
WHERE tenant = :tenant AND workflow_id = :workflow_id AND name = :name AND number <= :last AND outcome <> 'pending'

-- name: packages
SELECT {PackageRow} FROM packages ORDER BY tenant, name, version

-- name: packages_of_tenant
SELECT {PackageRow} FROM packages WHERE tenant = :tenant ORDER BY name, version

-- name: find_package
SELECT {PackageRow} FROM packages WHERE tenant = :tenant AND name = :name AND version = :version

-- name: yank_package
UPDATE packages SET yanked_at = :yanked_at, yanked_reason = :yanked_reason
WHERE tenant = :tenant AND name = :name AND version = :version

-- name: active_versions
SELECT {ActiveRow} FROM active_versions ORDER BY tenant, name

-- name: rollouts
SELECT {RolloutRow} FROM rollouts
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = rollouts.tenant AND l.lane = 0), 0) = :shard
ORDER BY updated_at, tenant, rollout_id

-- name: find_site
SELECT value FROM site WHERE name = :name

-- name: all_resources
SELECT {ResourceRow} FROM resources
WHERE coalesce(
    (SELECT l.shard FROM lanes AS l WHERE l.tenant = resources.tenant AND l.lane = resources.lane), 0
) = :shard
ORDER BY tenant DESC, created_at DESC, worker_id DESC, resource_id DESC LIMIT :limit

-- name: list_resources
SELECT {ResourceRow} FROM resources
WHERE tenant = :tenant AND (created_at, worker_id, resource_id) < (:before_at, :before_worker, :before_id)
    AND (CAST(:worker_id AS text) IS NULL OR worker_id = :worker_id)
    AND (CAST(:type AS text) IS NULL OR type = :type) AND (CAST(:state AS text) IS NULL OR state = :state)
ORDER BY created_at DESC, worker_id DESC, resource_id DESC LIMIT :limit

-- name: list_resources_of_run
SELECT {ResourceRow} FROM resources
WHERE tenant = :tenant AND run_id = :run_id
    AND (created_at, worker_id, resource_id) < (:before_at, :before_worker, :before_id)
    AND (CAST(:worker_id AS text) IS NULL OR worker_id = :worker_id)
    AND (CAST(:type AS text) IS NULL OR type = :type) AND (CAST(:state AS text) IS NULL OR state = :state)
ORDER BY created_at DESC, worker_id DESC, resource_id DESC LIMIT :limit

-- name: find_resources
SELECT {ResourceRow} FROM resources WHERE tenant = :tenant AND resource_id = :resource_id ORDER BY worker_id

-- name: find_resource
SELECT {ResourceRow} FROM resources
WHERE tenant = :tenant AND worker_id = :worker_id AND resource_id = :resource_id

-- name: blobs_of_resources
SELECT blob FROM resources WHERE blob IS NOT NULL

-- name: tenant_events
SELECT {TenantEvent} FROM tenant_events WHERE tenant = :tenant AND number > :after ORDER BY number LIMIT :limit

-- name: last_tenant_event
SELECT max(number) FROM tenant_events WHERE tenant = :tenant

-- name: audit
SELECT number, {AuditRow} FROM audits WHERE tenant = :tenant AND number < :before
    AND (CAST(:who AS text) IS NULL OR who = :who) AND (CAST(:action AS text) IS NULL OR action = :action)
    AND (CAST(:prefix AS text) IS NULL OR substr(action, 1, length(:prefix)) = :prefix)
    AND (CAST(:code AS text) IS NULL OR code = :code)
    AND (CAST(:outcome AS text) IS NULL OR (code IS NULL) = (:outcome = 'ok'))
    AND (CAST(:corr AS text) IS NULL OR corr = :corr) AND (CAST(:worker AS text) IS NULL OR worker = :worker)
    AND (CAST(:since AS bigint) IS NULL OR at >= :since) AND (CAST(:until AS bigint) IS NULL OR at < :until)
ORDER BY number DESC LIMIT :limit

-- name: audit_after
SELECT number, {AuditRow} FROM audits WHERE tenant = :tenant AND number > :after
    AND (CAST(:who AS text) IS NULL OR who = :who) AND (CAST(:action AS text) IS NULL OR action = :action)
    AND (CAST(:prefix AS text) IS NULL OR substr(action, 1, length(:prefix)) = :prefix)
    AND (CAST(:code AS text) IS NULL OR code = :code)
    AND (CAST(:outcome AS text) IS NULL OR (code IS NULL) = (:outcome = 'ok'))
    AND (CAST(:corr AS text) IS NULL OR corr = :corr) AND (CAST(:worker AS text) IS NULL OR worker = :worker)
    AND (CAST(:since AS bigint) IS NULL OR at >= :since) AND (CAST(:until AS bigint) IS NULL OR at < :until)
ORDER BY number LIMIT :limit

-- name: audit_heads
SELECT {AuditHeadRow} FROM audit_heads
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = audit_heads.tenant AND l.lane = 0), 0) = :shard
ORDER BY tenant

-- name: sent_audits
SELECT {SentAuditRow} FROM sent_audits
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = sent_audits.tenant AND l.lane = 0), 0) = :shard
ORDER BY sent_id LIMIT :limit

-- name: audit_head
SELECT number, hash, removed FROM audit_heads WHERE tenant = :tenant

-- name: event_heads
-- The last number of each stream of the shard: of a tenant, or of a further lane of one.
WITH RECURSIVE known (tenant) AS (
    SELECT min(tenant) FROM tenant_events
    UNION ALL
    SELECT (SELECT min(e.tenant) FROM tenant_events AS e WHERE e.tenant > known.tenant)
    FROM known WHERE known.tenant IS NOT NULL
)
SELECT tenant, (SELECT max(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant)
FROM known WHERE tenant IS NOT NULL
    AND coalesce((SELECT l.shard FROM lanes AS l WHERE l.name = known.tenant), 0) = :shard
ORDER BY tenant

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

-- name: oldest_finished
SELECT run_id, plan_id, finished_at, (
    SELECT CAST(coalesce(sum(length(body)), 0) AS bigint) FROM fact_segments WHERE fact_segments.run_id = runs.run_id
)
FROM runs WHERE finished_at IS NOT NULL ORDER BY finished_at, run_id LIMIT :limit

-- name: doom_runs
-- The segments of a removed run go in pieces.
INSERT INTO doomed_runs (run_id)
SELECT run_id FROM runs WHERE run_id IN (:run_ids[]) AND finished_at IS NOT NULL
ON CONFLICT (run_id) DO NOTHING

-- name: delete_runs
DELETE FROM runs WHERE run_id IN (:run_ids[]) AND finished_at IS NOT NULL

-- name: doomed_segments
SELECT s.run_id, s.last, length(s.body) FROM doomed_runs AS d JOIN fact_segments AS s USING (run_id)
ORDER BY d.run_id, s.last LIMIT :limit

-- name: forget_doomed
DELETE FROM doomed_runs
WHERE NOT EXISTS (SELECT 1 FROM fact_segments WHERE fact_segments.run_id = doomed_runs.run_id)

-- name: old_events
-- The front of each stream up to the last old event among its first ones (P17); what is at its end stays, because it
-- says where the numbers go on. Streams without old events are not read: only their first event is, and the last one
-- of a piece, because a clock that was ahead may have stamped those before it.
WITH RECURSIVE known (tenant) AS (
    SELECT min(tenant) FROM tenant_events
    UNION ALL
    SELECT (SELECT min(e.tenant) FROM tenant_events AS e WHERE e.tenant > known.tenant)
    FROM known WHERE known.tenant IS NOT NULL
), spans AS (
    SELECT tenant, (SELECT min(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant) AS first,
        (SELECT max(e.number) FROM tenant_events AS e WHERE e.tenant = known.tenant) AS last
    FROM known WHERE tenant IS NOT NULL
)
SELECT tenant, first, (
    SELECT max(e.number) FROM tenant_events AS e
    WHERE e.tenant = spans.tenant AND e.number < spans.first + :piece AND e.number < spans.last AND e.at < :cutoff
)
FROM spans WHERE EXISTS (
    SELECT 1 FROM tenant_events AS e
    WHERE e.tenant = spans.tenant AND e.number IN (spans.first, spans.first + :piece - 1) AND e.at < :cutoff
)

-- name: delete_events
DELETE FROM tenant_events WHERE tenant = :tenant AND number <= :last

-- name: count_audits
SELECT coalesce((SELECT max(number) FROM audits) - (SELECT min(number) FROM audits) + 1, 0)

-- name: last_old_audit
-- The last one of the front that is old, so that no gap comes into a chain when the wall clock has stepped back.
SELECT coalesce(
    (SELECT min(number) - 1 FROM (SELECT number, at FROM audits ORDER BY number LIMIT :piece) AS oldest
     WHERE at >= :cutoff),
    (SELECT max(number) FROM (SELECT number FROM audits ORDER BY number LIMIT :piece) AS oldest), 0
)

-- name: last_surplus_audit
SELECT coalesce(max(number), 0) FROM (
    SELECT number FROM audits WHERE number <= (SELECT max(number) FROM audits) - :keep ORDER BY number LIMIT :piece
) AS oldest

-- name: note_removed_audits
UPDATE audit_heads SET removed = (
    SELECT max(a.chain_number) FROM audits AS a WHERE a.tenant = audit_heads.tenant AND a.number <= :last
)
WHERE tenant IN (SELECT a.tenant FROM audits AS a WHERE a.number <= :last AND a.chain_number IS NOT NULL)

-- name: delete_audits
DELETE FROM audits WHERE number <= :last

-- name: delete_submissions
DELETE FROM submissions WHERE (tenant, key) IN (
    SELECT tenant, key FROM submissions WHERE created_at < :cutoff ORDER BY created_at LIMIT :piece
)

-- name: delete_lane_keys
DELETE FROM lane_keys WHERE (tenant, key) IN (
    SELECT tenant, key FROM lane_keys WHERE created_at < :cutoff ORDER BY created_at LIMIT :piece
)

-- name: delete_ended_resources
DELETE FROM resources WHERE (tenant, worker_id, resource_id) IN (
    SELECT tenant, worker_id, resource_id FROM resources
    WHERE state IN ({ENDED_RESOURCES})
        AND coalesce(expires_at, created_at) < :cutoff
        AND (blob IS NULL OR coalesce(expires_at, created_at) < :copy_cutoff)
    LIMIT :piece
)

-- name: delete_ended_intents
DELETE FROM install_intents WHERE (tenant, worker_id, name, version) IN (
    SELECT tenant, worker_id, name, version FROM install_intents AS i
    WHERE updated_at < :cutoff AND state IN ({ENDED_INTENTS}) AND NOT EXISTS (
        SELECT 1 FROM workers WHERE workers.tenant = i.tenant AND workers.worker_id = i.worker_id
    ) LIMIT :piece
)

-- name: delete_ended_rollouts
DELETE FROM rollouts WHERE (tenant, rollout_id) IN (
    SELECT tenant, rollout_id FROM rollouts WHERE updated_at < :cutoff AND state IN ({ENDED_ROLLOUTS}) LIMIT :piece
)

-- name: good_tokens
SELECT {TokenRow} FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) ORDER BY token_id

-- name: list_tokens
SELECT {TokenRow} FROM tokens
WHERE tenant = :tenant AND kind <> 'link' AND (created_at, token_id) < (:before_at, :before_id)
    AND (CAST(:subject AS text) IS NULL OR subject = :subject)
ORDER BY created_at DESC, token_id DESC LIMIT :limit

-- name: find_token
SELECT {TokenRow} FROM tokens WHERE tenant = :tenant AND token_id = :token_id

-- name: revoke_tokens
UPDATE tokens SET revoked_at = :revoked_at, revoked_by = :revoked_by
WHERE token_id IN (:token_ids[]) AND revoked_at IS NULL

-- name: touch_token
UPDATE tokens SET used_at = :used_at WHERE token_id = :token_id

-- name: delete_ended_tokens
DELETE FROM tokens WHERE token_id IN (
    SELECT token_id FROM tokens
    WHERE revoked_at < :cutoff OR expires_at < :cutoff LIMIT :piece
)

-- name: create_user
INSERT INTO users ({UserRow})
VALUES (:tenant, :name, :role, :password_hash, :is_disabled, :created_at, :created_by, :updated_at,
        :issuer)
ON CONFLICT (tenant, name) DO NOTHING

-- name: find_user
SELECT {UserRow} FROM users WHERE tenant = :tenant AND name = :name

-- name: list_users
SELECT {UserRow} FROM users WHERE tenant = :tenant AND name > :after ORDER BY name LIMIT :limit

-- name: delete_user
DELETE FROM users WHERE tenant = :tenant AND name = :name

-- name: data_keys
SELECT {DataKeyRow} FROM data_keys
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = data_keys.tenant AND l.lane = 0), 0) = :shard
ORDER BY key_id

-- name: data_keys_of_site
SELECT {DataKeyRow} FROM data_keys ORDER BY key_id

-- name: secrets
SELECT {SecretRow} FROM secrets
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = secrets.tenant AND l.lane = 0), 0) = :shard
ORDER BY tenant, name

-- name: delete_secret
DELETE FROM secrets WHERE tenant = :tenant AND name = :name

-- name: tenants
-- Those of which some lane is in the shard.
SELECT {TenantRow} FROM tenants
WHERE coalesce((SELECT l.shard FROM lanes AS l WHERE l.tenant = tenants.tenant AND l.lane = 0), 0) = :shard
    OR EXISTS (SELECT 1 FROM lanes AS l WHERE l.tenant = tenants.tenant AND l.shard = :shard)
ORDER BY tenant

-- name: all_tenants
SELECT {TenantRow} FROM tenants ORDER BY tenant

-- name: tenant_of_token
-- The tenant of a token never changes, so that nobody asks twice.
SELECT tenant FROM tokens WHERE digest = :digest

-- name: tenant_of_run
SELECT tenant, lane FROM runs WHERE run_id = :run_id

-- name: lanes
SELECT {LaneRow} FROM lanes ORDER BY tenant, lane

-- name: lanes_of_tenant
SELECT {LaneRow} FROM lanes WHERE tenant = :tenant ORDER BY lane
