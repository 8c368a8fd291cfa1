-- The scheduler processes that share this store. A row that is not renewed is of a process that has ended.
CREATE TABLE nodes (
    node_id text COLLATE "C" PRIMARY KEY,
    url text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    is_leaving boolean NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL
);

-- Each commit updates the row of its shard: with room beside it the update touches no index.
ALTER TABLE shards SET (fillfactor = 50);

INSERT INTO shards (shard, owner, epoch, commit_number, writer, leased_until, held_bytes)
SELECT number, '', 0, 0, 0, '-infinity', 0 FROM generate_series(1, 15) AS number;
