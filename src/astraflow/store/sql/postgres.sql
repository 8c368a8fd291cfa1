-- What only PostgreSQL is asked, or is asked in its own words.

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

-- name: all_tables
SELECT c.relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'astraflow' AND c.relkind = 'r' ORDER BY c.relname

-- name: columns_of_table
SELECT column_name::text FROM information_schema.columns
WHERE table_schema = 'astraflow' AND table_name = :table ORDER BY ordinal_position

-- name: boolean_columns
SELECT column_name::text FROM information_schema.columns
WHERE table_schema = 'astraflow' AND table_name = :table AND data_type = 'boolean'

-- name: all_references
-- Which table refers to which.
SELECT child.relname, parent.relname FROM pg_catalog.pg_constraint AS c
JOIN pg_catalog.pg_class AS child ON child.oid = c.conrelid
JOIN pg_catalog.pg_class AS parent ON parent.oid = c.confrelid
WHERE c.contype = 'f' AND c.connamespace = 'astraflow'::regnamespace

-- name: numbered_tables
SELECT table_name::text, column_name::text,
    coalesce(pg_sequence_last_value(pg_get_serial_sequence(table_name, column_name)::regclass), 0)
FROM information_schema.columns WHERE table_schema = 'astraflow' AND is_identity = 'YES'

-- name: restart_sequence
SELECT setval(pg_get_serial_sequence(:table, :column)::regclass, greatest(:number, 1), :number > 0)

-- name: drop_schema
DROP SCHEMA astraflow CASCADE

-- name: lock_shards
SELECT owner, leased_until > clock_timestamp(), epoch FROM shards ORDER BY shard FOR UPDATE

-- name: add_shard
INSERT INTO shards (shard, owner, epoch, commit_number, writer, leased_until, held_bytes)
VALUES (:shard, '', 0, 0, 0, '-infinity', 0) ON CONFLICT DO NOTHING

-- name: restart_shards
UPDATE shards SET owner = '', epoch = :epoch, commit_number = 0, leased_until = '-infinity',
    held_bytes = CASE WHEN shard = 0 THEN (SELECT coalesce(sum(length(body)), 0) FROM fact_segments) ELSE 0 END

-- name: claim
-- A claim is free when it has run out; or when the connection of its owner is gone and the owner has not come back with
-- another. Of a role that we may not look at we do not know when its connections began: then they count as there.
UPDATE shards AS s SET owner = :owner, epoch = epoch + 1, commit_number = 0, writer = writer + 1,
    leased_until = clock_timestamp() + make_interval(secs => :ttl_s), renewed_at = clock_timestamp(),
    backend_epoch = epoch + 1, backend_pid = pg_backend_pid(),
    backend_start = (SELECT a.backend_start FROM pg_stat_activity AS a WHERE a.pid = pg_backend_pid())
WHERE shard = :shard AND (
    leased_until <= clock_timestamp() OR owner = :owner OR (
        backend_epoch = epoch AND backend_start IS NOT NULL
        AND renewed_at <= clock_timestamp() - make_interval(secs => :gone_s)
        AND NOT EXISTS (
            SELECT 1 FROM pg_stat_activity AS a
            WHERE a.pid = s.backend_pid AND (a.backend_start IS NULL OR a.backend_start = s.backend_start)
        )
    )
)
RETURNING epoch, writer, ARRAY(
    SELECT CAST(extract(epoch FROM clock_timestamp() - moment) AS float8) FROM unnest(lost_at) AS moment)

-- name: look_at_shards
-- Those that a tenant lives in, whether `claim` would find them free, how long ago their own work has ended nodes, and where
-- somebody has placed them.
SELECT shard, owner, leased_until <= clock_timestamp() OR (
        backend_epoch = epoch AND backend_start IS NOT NULL
        AND renewed_at <= clock_timestamp() - make_interval(secs => :gone_s)
        AND NOT EXISTS (
            SELECT 1 FROM pg_stat_activity AS a
            WHERE a.pid = s.backend_pid AND (a.backend_start IS NULL OR a.backend_start = s.backend_start)
        )
    ), ARRAY(SELECT CAST(extract(epoch FROM clock_timestamp() - moment) AS float8) FROM unnest(lost_at) AS moment),
    coalesce((SELECT value FROM site WHERE name = 'shard_place/' || s.shard), '')
FROM shards AS s WHERE shard = 0 OR EXISTS (SELECT 1 FROM lanes AS l WHERE l.shard = s.shard)
ORDER BY shard

-- name: note_shard_loss
-- The work of this shard ends its node. Once the epoch is another one the node has no part in it any more.
UPDATE shards SET lost_at = ARRAY(
    SELECT moment FROM unnest(lost_at || clock_timestamp()) AS moment ORDER BY moment DESC LIMIT :kept)
WHERE shard = :shard AND epoch = :epoch
RETURNING true

-- name: clear_shard_losses
UPDATE shards SET lost_at = CAST(ARRAY[] AS timestamptz[]) WHERE shard = :shard AND cardinality(lost_at) > 0
RETURNING true

-- name: look_at_nodes
SELECT node_id, url, CAST(extract(epoch FROM clock_timestamp() - seen_at) AS float8),
    CAST(extract(epoch FROM clock_timestamp() - started_at) AS float8), is_leaving, loads, version, facts_version
FROM nodes ORDER BY node_id

-- name: join_node
-- The first row of a node. It waits for whoever raises the version of facts, and is not written if they are newer then.
WITH written AS (SELECT value FROM site WHERE name = 'facts_version' FOR SHARE)
INSERT INTO nodes (node_id, url, version, facts_version, is_leaving, loads, started_at, seen_at)
SELECT :node_id, :url, :version, :facts_version, :is_leaving, :loads, clock_timestamp(), clock_timestamp()
FROM written WHERE CAST(written.value AS bigint) <= :facts_version
ON CONFLICT (node_id) DO UPDATE SET seen_at = clock_timestamp()
RETURNING true

-- name: renew_node
INSERT INTO nodes (node_id, url, version, facts_version, is_leaving, loads, started_at, seen_at)
VALUES (:node_id, :url, :version, :facts_version, :is_leaving, :loads, clock_timestamp(), clock_timestamp())
ON CONFLICT (node_id) DO UPDATE SET seen_at = clock_timestamp(), url = excluded.url,
    is_leaving = excluded.is_leaving, loads = excluded.loads

-- name: remove_nodes
-- This one, and those that have ended long ago.
DELETE FROM nodes WHERE node_id = :node_id OR seen_at < clock_timestamp() - make_interval(hours => 1)

-- name: master_ids
SELECT DISTINCT master_id FROM data_keys ORDER BY master_id

-- name: add_shards
INSERT INTO shards (shard, owner, epoch, commit_number, writer, leased_until, held_bytes)
SELECT number, '', 0, 0, 0, '-infinity', 0 FROM generate_series(0, CAST(:count AS bigint) - 1) AS number
ON CONFLICT DO NOTHING

-- name: lock_written_facts
-- Nodes that join wait from here on.
SELECT value FROM site WHERE name = 'facts_version' FOR UPDATE

-- name: nodes_that_read_less
SELECT node_id, url, version, facts_version FROM nodes
WHERE facts_version < :facts_version AND seen_at > clock_timestamp() - make_interval(secs => :known_s)
ORDER BY node_id

-- name: assign_lane
-- A lane stays where it is. A new one goes to the shard with the fewest that has no other lane of the tenant.
INSERT INTO lanes (tenant, lane, shard, name, state)
SELECT :tenant, :lane, s.shard, :name, CASE WHEN CAST(:lane AS bigint) = 0 THEN 'open' ELSE 'opening' END
FROM shards AS s
WHERE NOT EXISTS (SELECT 1 FROM lanes AS l WHERE l.tenant = :tenant AND l.shard = s.shard)
ORDER BY (SELECT count(*) FROM lanes AS l WHERE l.shard = s.shard), s.shard = 0, s.shard LIMIT 1
ON CONFLICT (tenant, lane) DO NOTHING

-- name: put_home_lane
-- A tenant without a row lives in shard 0.
INSERT INTO lanes (tenant, lane, shard, name) VALUES (:tenant, 0, 0, :tenant) ON CONFLICT DO NOTHING

-- name: set_lane_states
UPDATE lanes SET state = CASE WHEN lane >= :count THEN 'closing' WHEN state = 'closing' THEN 'opening' ELSE state END
WHERE tenant = :tenant

-- name: open_lanes
UPDATE lanes SET state = 'open' WHERE tenant = :tenant AND state = 'opening'

-- name: note_lanes_change
-- Another value each time: whoever has seen the last one reads the lanes again.
INSERT INTO site (name, value) VALUES ('lanes_change', CAST(clock_timestamp() AS text))
ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: set_site
INSERT INTO site (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: forget_site
DELETE FROM site WHERE name = :name

-- name: reserve_key
-- The first who asks says which lane a key belongs to, and for which request, until it is forgotten.
WITH made AS (
    INSERT INTO lane_keys (tenant, key, lane, fingerprint, created_at)
    VALUES (:tenant, :key, :lane, :fingerprint, :now)
    ON CONFLICT (tenant, key) DO UPDATE SET lane = excluded.lane, fingerprint = excluded.fingerprint,
        created_at = excluded.created_at
    WHERE lane_keys.created_at < :cutoff
    RETURNING lane, fingerprint
)
SELECT lane, fingerprint FROM made
UNION ALL SELECT lane, fingerprint FROM lane_keys WHERE tenant = :tenant AND key = :key LIMIT 1

-- name: find_lane_key
-- A key that was used when the tenant had one lane has its run only.
SELECT lane, fingerprint FROM lane_keys WHERE tenant = :tenant AND key = :key AND created_at >= :cutoff
UNION ALL
SELECT lane, coalesce(fingerprint, '') FROM submissions
WHERE tenant = :tenant AND key = :key AND created_at >= :cutoff
LIMIT 1

-- name: move_lane_key
UPDATE lane_keys SET lane = :to WHERE tenant = :tenant AND key = :key AND lane = :lane

-- name: lane_of_run
SELECT lane FROM runs WHERE run_id = :run_id AND tenant = :tenant

-- name: lanes_of_resource
SELECT DISTINCT lane FROM resources WHERE tenant = :tenant AND resource_id = :resource_id
    AND state NOT IN ({ENDED_RESOURCES}) ORDER BY lane

-- name: put_want
INSERT INTO lane_wants (tenant, name, version, wanted_at, problem) VALUES (:tenant, :name, :version, :now, NULL)
ON CONFLICT (tenant, name, version) DO UPDATE SET wanted_at = excluded.wanted_at

-- name: refuse_want
UPDATE lane_wants SET problem = :problem WHERE tenant = :tenant AND name = :name AND version = :version

-- name: delete_want
DELETE FROM lane_wants WHERE tenant = :tenant AND name = :name AND version = :version

-- name: lane_wants
SELECT tenant, name, version, wanted_at, problem FROM lane_wants ORDER BY tenant, name, version

-- name: tenant_of_hook
-- Asked once for each address, because it stays: so it needs no index.
SELECT tenant FROM triggers WHERE convert_from(body, 'UTF8')::jsonb ->> 'hookId' = :hook_id

-- name: held_by
SELECT owner FROM shards WHERE shard = :shard AND leased_until > clock_timestamp()

-- name: renew
UPDATE shards SET leased_until = clock_timestamp() + make_interval(secs => :ttl_s), renewed_at = clock_timestamp()
WHERE shard = :shard AND epoch = :epoch
RETURNING true

-- name: release
UPDATE shards SET leased_until = '-infinity' WHERE shard = :shard AND epoch = :epoch

-- name: take_writer
-- Waits for a transaction that is still under way, and shuts out every later one of the former connection.
UPDATE shards SET writer = writer + 1, backend_epoch = epoch, backend_pid = pg_backend_pid(),
    backend_start = (SELECT a.backend_start FROM pg_stat_activity AS a WHERE a.pid = pg_backend_pid())
WHERE shard = :shard AND epoch = :epoch RETURNING writer

-- name: fence
SELECT true FROM shards WHERE shard = :shard AND epoch = :epoch FOR UPDATE

-- name: commit
-- Everything hangs on the fence. A statement sees the tables as they were before it, its own rows not among them.
-- `postgres_commit.py` makes the writes of the rows from their structs, and counts the runs that were changed.
WITH fence AS (
    UPDATE shards SET commit_number = :number, held_bytes = held_bytes + :held_bytes
    WHERE shard = :shard AND epoch = :epoch AND writer = :writer AND commit_number < :number
    RETURNING true
), /* writes */
SELECT CASE
    WHEN count(*) = 0 THEN false
    WHEN /* count */ = :changed THEN true
    ELSE refuse('a run that is changed does not exist')
END FROM fence

-- name: read_segments
SELECT {FactSegment} FROM (
    SELECT {FactSegment}, sum(length(body)) OVER (ORDER BY last) AS upto, row_number() OVER (ORDER BY last) AS place
    FROM (
        SELECT {FactSegment} FROM fact_segments WHERE run_id = :run_id AND last > :after ORDER BY last LIMIT :limit
    ) AS following
) AS counted
WHERE upto <= :max_bytes OR place = 1 ORDER BY last

-- name: read_segments_back
SELECT {FactSegment} FROM (
    SELECT {FactSegment}, sum(length(body)) OVER (ORDER BY last DESC) AS upto,
        row_number() OVER (ORDER BY last DESC) AS place
    FROM (
        SELECT {FactSegment} FROM fact_segments
        WHERE run_id = :run_id AND first < :before ORDER BY last DESC LIMIT :limit
    ) AS preceding
) AS counted
WHERE upto <= :max_bytes OR place = 1 ORDER BY last DESC

-- name: delete_segments
WITH gone AS (
    DELETE FROM fact_segments WHERE run_id IN (:run_ids[]) RETURNING length(body) AS size
)
UPDATE shards SET held_bytes = held_bytes - (SELECT coalesce(sum(size), 0) FROM gone) WHERE shard = :shard

-- name: delete_first_segments
WITH gone AS (
    DELETE FROM fact_segments WHERE run_id = :run_id AND last <= :last RETURNING length(body) AS size
)
UPDATE shards SET held_bytes = held_bytes - (SELECT coalesce(sum(size), 0) FROM gone) WHERE shard = :shard

-- name: usage
-- The bytes of what is held: those of the files say little, because removed rows leave room that is used again later.
SELECT CAST((SELECT sum(held_bytes) FROM shards)
    + (SELECT coalesce(sum(length(definition) + length(plan)), 0) FROM plans)
    + (SELECT coalesce(sum(length(definition)), 0) FROM workflow_versions) AS bigint),
    (SELECT count(*) FROM runs), (SELECT count(*) FROM runs WHERE status IN ({ACTIVE_RUNS})),
    (SELECT max(version) FROM migrations)

-- name: held_bytes
-- As `usage` has them, without those of plans: there may be as many as runs.
SELECT CAST((SELECT sum(held_bytes) FROM shards)
    + (SELECT coalesce(sum(length(definition)), 0) FROM workflow_versions) AS bigint)

-- name: count_held
-- The finished runs, and the bytes that `held_bytes` leaves out.
SELECT (SELECT count(*) FROM runs WHERE finished_at IS NOT NULL),
    (SELECT CAST(coalesce(sum(length(definition) + length(plan)), 0) AS bigint) FROM plans)

-- name: delete_unused_plans
-- Answers with the bytes of each that `count_held` has counted.
DELETE FROM plans
WHERE plan_id IN (:plan_ids[]) AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan_id = plans.plan_id)
RETURNING length(definition) + length(plan)
