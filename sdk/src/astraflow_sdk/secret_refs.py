"""Secrets in parameters: `{"secretRef": {"name": "openai"}}` becomes the value, just before the handler runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "secretRef"


def with_secrets(value: Any, secrets: Mapping[str, str]) -> Any:
    """The parameters with the values of the secrets that came with them. References to others stay as they are."""
    if isinstance(value, dict):
        ref = value.get(KEY)
        if len(value) == 1 and isinstance(ref, dict) and ref.get("name") in secrets:
            return secrets[ref["name"]]
        return {key: with_secrets(one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [with_secrets(one, secrets) for one in value]
    return value
