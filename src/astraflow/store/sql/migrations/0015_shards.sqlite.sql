WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 15)
INSERT INTO shards (shard, owner, epoch, commit_number) SELECT number, '', 0, 0 FROM numbers;
