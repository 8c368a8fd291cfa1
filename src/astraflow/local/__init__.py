"""A whole system in one process, for one run: a scheduler with a store in memory, and a worker. Nothing listens."""
