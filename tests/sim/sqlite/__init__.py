"""Tier B: the core world on the real SQLite store, through the real row writer, the real recovery and the real feed."""
