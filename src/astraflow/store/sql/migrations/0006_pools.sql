-- HTTP worker pools: where tasks are pushed to, for workers that hold no session.
CREATE TABLE pools (
    tenant {text} NOT NULL,
    name {text} NOT NULL,
    body {bytes} NOT NULL,
    updated_at {integer} NOT NULL,
    PRIMARY KEY (tenant, name)
){keyed};
