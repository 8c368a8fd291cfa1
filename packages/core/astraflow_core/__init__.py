"""Package `core`: the nodes that are always there."""
