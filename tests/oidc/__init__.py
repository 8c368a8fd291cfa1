"""Logging in at an OpenID Connect issuer."""
