"""The errors of HTTP worker pools and of their callbacks: rows of the catalogue (`errors`)."""

from __future__ import annotations

from astraflow.core.error_kinds import again as _again
from astraflow.core.error_kinds import final as _final

# fmt: off

# --- HTTP worker pools ---

TRIGGER_NOT_FOUND = _final("E.TRIGGER.NOT_FOUND", 404,
    "there is no such trigger, or none that you may see",
    "list the triggers of the workflow: astra triggers list --workflow ID")
TRIGGER_DISABLED = _final("E.TRIGGER.DISABLED", 409,
    "the trigger is disabled",
    "enable it: astra triggers enable WORKFLOW TRIGGER")
TRIGGER_SIGNATURE = _final("E.TRIGGER.SIGNATURE", 401,
    "the request is not signed with the secret of the webhook",
    "send the HMAC-SHA256 of the body as X-Hub-Signature-256: sha256=<hex> or X-Signature: <hex>")
TRIGGER_BUSY = _again("E.TRIGGER.BUSY", 503,
    "too many runs of the trigger wait to be started",
    "try again later with the same delivery id")
TRIGGER_LOST = _final("E.TRIGGER.LOST", 500,
    "the run of a time or a delivery waited for so long that nobody knows any more whether it was started",
    "look at the runs of that time, and start one by hand if there is none")
TRIGGER_LOOP = _final("E.TRIGGER.LOOP", 409,
    "workflows start each other without end",
    "let one of their triggers wait for something else, or disable it: astra triggers disable WORKFLOW TRIGGER")
SIGNAL_NO_ADDRESS = _final("E.SIGNAL.NO_ADDRESS", 404,
    "nothing waits for a signal at this address, or not any more",
    "look at the signals that the run waits for: astra runs signals RUN")
POOL_NOT_FOUND = _final("E.POOL.NOT_FOUND", 404,
    "there is no such HTTP pool",
    "list them with: astra pools list")
POOL_BUSY = _final("E.POOL.BUSY", 409,
    "the HTTP pool cannot be removed while attempts are under way in it",
    "pause it, wait until they have ended, and remove it then")
POOL_INVALID = _final("E.POOL.INVALID", 422,
    "the settings of the HTTP pool cannot work",
    "correct the field that the answer names")
DISPATCH_PUSH_REFUSED = _again("E.DISPATCH.PUSH_REFUSED", 502,
    "the URL of an HTTP pool refused the task, or could not be reached",
    "check the URL and the secret of the pool, and the log of its worker")

# --- the callbacks of HTTP workers (ADR-023), whose codes have their own form ---

INVALID_TOKEN = _final("invalid_token", 401,
    "the task token is missing, malformed, expired, or for another task",
    "use the newest token of this attempt")
INVALID_ARGUMENT = _final("invalid_argument", 400,
    "the body of the callback is not as the contract says",
    "correct the field that the answer names")
PAYLOAD_TOO_LARGE = _final("payload_too_large", 413,
    "the body of the callback, its output or its message is larger than allowed",
    "put large output into a store of your own and report a reference to it")
TASK_NOT_FOUND = _final("task_not_found", 404,
    "there is no such task, or its run was removed",
    "stop the work")
ATTEMPT_MISMATCH = _final("attempt_mismatch", 409,
    "the report is not of the newest attempt of the task",
    "stop the work; what it did counts for nothing")
TASK_ALREADY_TERMINAL = _final("task_already_terminal", 409,
    "the attempt has ended, or was cancelled",
    "stop the work")
TASK_EXPIRED = _final("task_expired", 410,
    "the attempt has ended, or its heartbeats did not come in time",
    "stop the work at once")
NOT_STARTED = _final("not_started", 409,
    "the attempt was not reported as started",
    "send started first")
ALREADY_STARTED = _final("already_started", 409,
    "another invocation has started the attempt: it was delivered twice",
    "stop the work")

# fmt: on
