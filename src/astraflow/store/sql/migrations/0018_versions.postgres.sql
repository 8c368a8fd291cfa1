-- readable by schema: 17
-- `facts_version`: the newest facts that this node reads; 0: it is of a release that did not say.
ALTER TABLE nodes ADD COLUMN facts_version {integer} NOT NULL DEFAULT 0;
-- `lost_at`: when the last owners of the shard lost it without giving it back.
ALTER TABLE shards ADD COLUMN lost_at timestamptz[] NOT NULL DEFAULT '{}';
