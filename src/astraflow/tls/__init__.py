"""TLS: contexts of both ends, the identity in a verified certificate, and a small certificate authority."""

from __future__ import annotations
