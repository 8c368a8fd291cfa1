-- Every run and every event is written to each index of its table. What is active is found by its status, so that it
-- needs no index of its own; the events of a tenant are old from the front of its stream on.
DROP INDEX runs_active;
DROP INDEX runs_by_status;
CREATE INDEX runs_by_status ON runs (status, tenant, created_at, run_id);

DROP INDEX tenant_events_by_time;
