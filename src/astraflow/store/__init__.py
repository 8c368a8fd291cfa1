"""Durable state: the store protocol, and SQLite, PostgreSQL and memory behind it."""
