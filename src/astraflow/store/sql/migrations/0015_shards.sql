-- Where the work of a tenant is decided: each lane of a tenant lives in one shard. A lane without a row lives in shard 0,
-- and so does every tenant of a store that one scheduler writes.
CREATE TABLE lanes (
    tenant {text} NOT NULL,
    lane {integer} NOT NULL,
    shard {integer} NOT NULL REFERENCES shards (shard),
    PRIMARY KEY (tenant, lane)
){keyed};

ALTER TABLE runs ADD COLUMN lane {integer} NOT NULL DEFAULT 0;


-- What an admin of the site does is kept in the audit of the site, whose chain the owner of its shard alone continues.
CREATE TABLE sent_audits (
    sent_id {text} PRIMARY KEY,
    tenant {text} NOT NULL,
    at {integer} NOT NULL,
    who {text} NOT NULL,
    action {text} NOT NULL,
    corr {text},
    code {text},
    subject {text} NOT NULL
){keyed};
