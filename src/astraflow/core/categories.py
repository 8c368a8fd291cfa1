"""Categories of failures: the keys of the retry table. `schemas/error.schema.json` says the same to other languages."""

from __future__ import annotations

from typing import Literal

RetryCategory = Literal["USER_CODE", "DATA_QUALITY", "INFRASTRUCTURE", "CONFIGURATION", "TIMEOUT"]
"""What a retry policy may name."""
Category = Literal[RetryCategory, "CANCELLED"]
"""What an attempt may fail with; one that was cancelled is never retried."""
