"""The body of `completed`, made from the outcome of a handler. The secrets of the attempt are masked in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astraflow_sdk.secret_mask import SecretMask

MESSAGE_CHARS = 1_000
TIMED_OUT = "timeout"


def report_of(
    frame: Mapping[str, Any], cancel_reason: str | None, mask: SecretMask
) -> dict[str, Any]:
    """The `result` frame of a host as a report."""
    error = frame.get("error")
    if frame["status"] == "CANCELLED":
        if cancel_reason == TIMED_OUT:
            message = "the handler did not end within the timeout of its node"
            return _failed("E.RUNNER.TIMEOUT", "TIMEOUT", message)
        return {"outcome": "CANCELLED", "cancelledDuringPhase": "running"}
    if error is not None:
        return {"outcome": "FAILED", "error": _error_of(error, mask)}
    if frame.get("artifacts"):
        message = (
            "a worker without a session cannot keep artifacts: return the data, or a reference"
        )
        return _failed("E.RESULT.INVALID", "CONFIGURATION", message)
    return {"outcome": frame["status"], "output": mask.value(frame["result"])}


def _error_of(error: Mapping[str, Any], mask: SecretMask) -> dict[str, Any]:
    # Masked before it is cut: half a secret would not be found.
    body = {
        "category": error["category"],
        "code": mask.text(error["code"]),
        "message": mask.text(error["message"])[:MESSAGE_CHARS],
    }
    if error.get("stack"):
        body["stackTrace"] = mask.text(error["stack"])
    if error.get("retryable") is not None:
        body["retryable"] = error["retryable"]
    return body


def _failed(code: str, category: str, message: str) -> dict[str, Any]:
    return {
        "outcome": "FAILED",
        "error": {"code": code, "category": category, "message": message},
    }
