-- Who may get in: tenants, their users, and every bearer text that is good, of which only the digest is kept.
CREATE TABLE tenants (
    tenant {text} PRIMARY KEY,
    is_suspended {boolean} NOT NULL,
    policy {bytes} NOT NULL,
    created_at {integer} NOT NULL,
    created_by {text} NOT NULL,
    updated_at {integer} NOT NULL
){strict};

CREATE TABLE users (
    tenant {text} NOT NULL,
    name {text} NOT NULL,
    role {text} NOT NULL,
    password_hash {text} NOT NULL,
    is_disabled {boolean} NOT NULL,
    created_at {integer} NOT NULL,
    created_by {text} NOT NULL,
    updated_at {integer} NOT NULL,
    PRIMARY KEY (tenant, name)
){strict};

-- `family`: the token that this one was renewed from, or its own id. They are revoked together.
CREATE TABLE tokens (
    token_id {text} PRIMARY KEY,
    tenant {text} NOT NULL,
    kind {text} NOT NULL,
    digest {bytes} NOT NULL,
    subject {text} NOT NULL,
    user_name {text},
    role {text} NOT NULL,
    label {text} NOT NULL,
    family {text} NOT NULL,
    created_at {integer} NOT NULL,
    created_by {text} NOT NULL,
    expires_at {integer},
    idle_ms {integer},
    used_at {integer},
    revoked_at {integer},
    revoked_by {text} NOT NULL
){strict};

CREATE UNIQUE INDEX tokens_by_digest ON tokens (digest);
CREATE INDEX tokens_by_tenant ON tokens (tenant, created_at, token_id);
CREATE INDEX tokens_by_family ON tokens (family);
