"""Secrets, from outside: on real processes."""
