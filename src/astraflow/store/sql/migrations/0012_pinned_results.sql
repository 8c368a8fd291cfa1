-- Results that stand in for those of nodes while a workflow is developed: only runs that ask for them use them.
CREATE TABLE pinned_results (
    tenant {text} NOT NULL,
    workflow_id {text} NOT NULL,
    node_id {text} NOT NULL,
    result {bytes} NOT NULL,
    from_run {text},
    updated_at {integer} NOT NULL,
    updated_by {text} NOT NULL,
    PRIMARY KEY (tenant, workflow_id, node_id)
){strict};
