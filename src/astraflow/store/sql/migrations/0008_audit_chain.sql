-- The audit of a tenant is a chain of hashes. Rows from before have none. `removed`: the last number that retention has
-- removed.
ALTER TABLE audits ADD COLUMN worker {text} NOT NULL DEFAULT '';
ALTER TABLE audits ADD COLUMN chain_number {integer};
ALTER TABLE audits ADD COLUMN previous {bytes};
ALTER TABLE audits ADD COLUMN hash {bytes};

CREATE TABLE audit_heads (
    tenant {text} PRIMARY KEY,
    number {integer} NOT NULL,
    hash {bytes} NOT NULL,
    removed {integer} NOT NULL DEFAULT 0
){strict};
