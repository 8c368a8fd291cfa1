"""The nodes of package example."""

from __future__ import annotations

from astraflow_sdk import Context, node


@node("example.greet", category="Text", tags=["hello"])
async def greet(ctx: Context, name: str, times: int = 1) -> dict[str, str]:
    """Greet somebody.

    Args:
        name: The person to greet.
        times: The number of greetings.
    """
    ctx.log("info", f"greeting {name}")
    return {"text": " ".join([f"Hello, {name}!"] * times)}
