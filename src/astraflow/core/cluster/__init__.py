"""Several schedulers on one store: which of them serves which shard."""
