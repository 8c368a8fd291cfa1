"""Deterministic simulation: whole worlds of schedulers, workers, hosts and clients, made from a seed."""
