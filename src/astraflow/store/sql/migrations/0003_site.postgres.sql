-- Which connection of the server is the owner's: when it is gone, so is the owner, and its claim need not run out. They
-- count only for the epoch that they were written with: a scheduler of an older version does not write them.
ALTER TABLE shards
    ADD COLUMN renewed_at timestamptz NOT NULL DEFAULT '-infinity',
    ADD COLUMN backend_epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN backend_pid integer,
    ADD COLUMN backend_start timestamptz;
