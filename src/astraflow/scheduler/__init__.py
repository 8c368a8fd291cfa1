"""The scheduler process: one writer round the pure engine. Commit, then speak."""
