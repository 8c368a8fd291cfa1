-- Secrets, encrypted with the data key of their tenant; data keys, encrypted with the master key, which is not here.
CREATE TABLE data_keys (
    key_id {text} PRIMARY KEY,
    tenant {text} NOT NULL,
    master_id {text} NOT NULL,
    wrapped {bytes} NOT NULL,
    created_at {integer} NOT NULL
){strict};

CREATE TABLE secrets (
    tenant {text} NOT NULL,
    name {text} NOT NULL,
    version {integer} NOT NULL,
    key_id {text} NOT NULL,
    sealed {bytes} NOT NULL,
    packages {bytes} NOT NULL,
    created_at {integer} NOT NULL,
    updated_at {integer} NOT NULL,
    updated_by {text} NOT NULL,
    PRIMARY KEY (tenant, name)
){strict};
