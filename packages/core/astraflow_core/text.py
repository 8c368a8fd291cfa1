"""Nodes that make text."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

from astraflow_sdk import ConfigurationError, Context, DataQualityError, node

__all__ = ["stream", "template"]

_NAME = re.compile(r"\{\{\s*([^{}\s]+)\s*\}\}")
_WORD = re.compile(r"\s*\S+\s*")


@node("core.stream")
async def stream(ctx: Context, text: str = "", delayMs: float = 0) -> dict[str, Any]:
    """Stream a text word by word, as a language model does."""
    if not isinstance(text, str):
        raise DataQualityError(f"text must be a string, not {type(text).__name__}")
    for word in _WORD.findall(text):
        if delayMs:
            await asyncio.sleep(delayMs / 1000)
        ctx.emit(word, channel="llm")
    return {"text": text}


@node("core.template", inline=True)
def template(template: str = "", values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Fill `{{name}}` with values; `{{user.name}}` looks inside objects."""
    if not isinstance(template, str):
        raise ConfigurationError(f"template must be a string, not {type(template).__name__}")
    return {"text": _NAME.sub(lambda found: _text_of(values or {}, found[1]), template)}


def _text_of(values: Any, name: str) -> str:
    value = values
    if isinstance(values, Mapping) and name in values:
        value = values[name]
    else:
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise DataQualityError(f"the template names a value that is not there: {name}")
            value = value[part]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
