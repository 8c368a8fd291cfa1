-- `writer` grows with every connection of the owner, so that a commit left under way on a connection that was given up
-- cannot be written after it has been asked for. `held_bytes` is the size of all pages: what the database takes on the
-- disk says little, because removed rows leave room behind that is used again later.
CREATE TABLE shards (
    shard bigint PRIMARY KEY,
    owner text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    commit_number bigint NOT NULL,
    writer bigint NOT NULL,
    leased_until timestamptz NOT NULL,
    held_bytes bigint NOT NULL
);

INSERT INTO shards VALUES (0, '', 0, 0, 0, '-infinity', 0);

CREATE TABLE pages (
    run_id text COLLATE "C" NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run_id, last)
);

CREATE TABLE audits (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    who text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    corr text COLLATE "C",
    code text COLLATE "C",
    detail bytea NOT NULL
);

CREATE INDEX audits_by_tenant ON audits (tenant, number);

-- A statement that must not be written says so from inside.
CREATE FUNCTION refuse(reason text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', reason USING ERRCODE = 'integrity_constraint_violation';
END
$$;
