"""The HTTP surface of a scheduler: REST, event streams, health and metrics. It decides nothing about runs."""
