-- What only SQLite is asked, or is asked in its own words.

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

-- name: count_tables
SELECT count(*) FROM sqlite_schema

-- name: check_pages
PRAGMA integrity_check(100)

-- name: check_references
PRAGMA foreign_key_check

-- name: free_pages
SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count

-- name: give_pages_back
PRAGMA incremental_vacuum(1024)

-- name: begin_reading
BEGIN

-- name: write_unprotected
-- Of a file that counts only when it is whole.
PRAGMA synchronous = OFF

-- name: leave_wal
PRAGMA journal_mode = DELETE

-- name: all_tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name

-- name: columns_of_table
SELECT name FROM pragma_table_info(:table) ORDER BY cid

-- name: all_sequences
SELECT name, seq FROM sqlite_sequence

-- name: forget_sequence
DELETE FROM sqlite_sequence WHERE name = :table

-- name: restart_sequence
INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :number)

-- name: add_shard
INSERT INTO shards (shard, owner, epoch, commit_number) VALUES (:shard, '', 0, 0) ON CONFLICT DO NOTHING

-- name: divided_tenant
SELECT tenant, count(*) FROM lanes GROUP BY tenant HAVING count(*) > 1 ORDER BY tenant LIMIT 1

-- name: gather_lanes
UPDATE lanes SET shard = 0

-- name: restart_shards
UPDATE shards SET owner = '', epoch = :epoch, commit_number = 0

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: claim
UPDATE shards SET owner = :owner, epoch = epoch + 1, commit_number = 0 WHERE shard = :shard RETURNING epoch

-- name: release
UPDATE shards SET owner = '' WHERE shard = :shard AND epoch = :epoch

-- name: fence_commit
UPDATE shards SET commit_number = :number WHERE shard = :shard AND epoch = :epoch AND commit_number < :number

-- name: read_segments
-- The reader stops at its limit of bytes; nothing is read ahead.
SELECT {FactSegment} FROM fact_segments WHERE run_id = :run_id AND last > :after ORDER BY last

-- name: read_segments_back
SELECT {FactSegment} FROM fact_segments WHERE run_id = :run_id AND first < :before ORDER BY last DESC

-- name: delete_segments
DELETE FROM fact_segments WHERE run_id IN (:run_ids[])

-- name: delete_first_segments
DELETE FROM fact_segments WHERE run_id = :run_id AND last <= :last

-- name: usage
-- The bytes in use of the file: its free pages are filled before it grows.
SELECT (page_count - freelist_count) * page_size, (SELECT count(*) FROM runs),
    (SELECT count(*) FROM runs WHERE status IN ({ACTIVE_RUNS})), user_version
FROM pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_user_version

-- name: held_bytes
-- As `usage` has them, without counting rows.
SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size

-- name: count_held
-- The finished runs, and the bytes of plans that `held_bytes` leaves out: none, they are in the file.
SELECT count(*), 0 FROM runs WHERE finished_at IS NOT NULL

-- name: delete_unused_plans
-- Answers with the bytes of each that `count_held` has counted.
DELETE FROM plans
WHERE plan_id IN (:plan_ids[]) AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.plan_id = plans.plan_id)
RETURNING 0
