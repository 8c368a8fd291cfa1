"""Every error of AstraFlow: the codes, as data, and the exceptions that carry them.

A code is what a machine reads: it goes into frames, answers, logs and the history of a run, and it never changes its
meaning. A row says what happened, whether trying again can help, which HTTP status an answer with it has, and what to
do. `docs/reference/errors.md` is made from these rows. Those of HTTP workers are in `callback_errors`,
those of stores in `store_errors`.

An exception says whose fault it was, so that a caller can tell what to do without reading codes::

    AstraflowError
    ├── LocalProtocolError    we were about to break the protocol: our own caller's mistake
    ├── RemoteProtocolError   the peer broke the protocol: the connection ends
    ├── Refused               the input is wrong or not allowed: the caller must change it
    ├── Conflict              the input is fine, but the state it meets does not allow it
    ├── NotFound              there is no such thing, or none that the caller may see
    ├── Unavailable           it cannot be done now: the caller may try later
    ├── StoreError            the store failed or refused
    │   └── OutcomeUnknown    nobody knows whether the commit was written: read it back (R16)
    └── Bug                   an invariant of ours broke

The constant of `E.SESSION.DENIED` is `SESSION_DENIED`. Messages: what happened, to what; lower case, no full stop, the
value last after a colon, and nothing that a peer should not read.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from astraflow.core.callback_errors import ALREADY_STARTED as ALREADY_STARTED
from astraflow.core.callback_errors import ATTEMPT_MISMATCH as ATTEMPT_MISMATCH
from astraflow.core.callback_errors import DISPATCH_PUSH_REFUSED as DISPATCH_PUSH_REFUSED
from astraflow.core.callback_errors import INVALID_ARGUMENT as INVALID_ARGUMENT
from astraflow.core.callback_errors import INVALID_TOKEN as INVALID_TOKEN
from astraflow.core.callback_errors import NOT_STARTED as NOT_STARTED
from astraflow.core.callback_errors import PAYLOAD_TOO_LARGE as PAYLOAD_TOO_LARGE
from astraflow.core.callback_errors import POOL_BUSY as POOL_BUSY
from astraflow.core.callback_errors import POOL_INVALID as POOL_INVALID
from astraflow.core.callback_errors import POOL_NOT_FOUND as POOL_NOT_FOUND
from astraflow.core.callback_errors import SIGNAL_NO_ADDRESS as SIGNAL_NO_ADDRESS
from astraflow.core.callback_errors import TASK_ALREADY_TERMINAL as TASK_ALREADY_TERMINAL
from astraflow.core.callback_errors import TASK_EXPIRED as TASK_EXPIRED
from astraflow.core.callback_errors import TASK_NOT_FOUND as TASK_NOT_FOUND
from astraflow.core.callback_errors import TRIGGER_BUSY as TRIGGER_BUSY
from astraflow.core.callback_errors import TRIGGER_DISABLED as TRIGGER_DISABLED
from astraflow.core.callback_errors import TRIGGER_LOOP as TRIGGER_LOOP
from astraflow.core.callback_errors import TRIGGER_LOST as TRIGGER_LOST
from astraflow.core.callback_errors import TRIGGER_NOT_FOUND as TRIGGER_NOT_FOUND
from astraflow.core.callback_errors import TRIGGER_SIGNATURE as TRIGGER_SIGNATURE
from astraflow.core.error_kinds import AstraflowError as AstraflowError
from astraflow.core.error_kinds import Bug as Bug
from astraflow.core.error_kinds import Code as Code
from astraflow.core.error_kinds import Conflict as Conflict
from astraflow.core.error_kinds import LocalProtocolError as LocalProtocolError
from astraflow.core.error_kinds import NotFound as NotFound
from astraflow.core.error_kinds import OutcomeUnknown as OutcomeUnknown
from astraflow.core.error_kinds import Refused as Refused
from astraflow.core.error_kinds import RemoteProtocolError as RemoteProtocolError
from astraflow.core.error_kinds import StoreError as StoreError
from astraflow.core.error_kinds import Unavailable as Unavailable
from astraflow.core.error_kinds import again as _again
from astraflow.core.error_kinds import final as _final
from astraflow.core.store_errors import BACKUP_INVALID as BACKUP_INVALID
from astraflow.core.store_errors import BACKUP_LANES as BACKUP_LANES
from astraflow.core.store_errors import BACKUP_NEWER as BACKUP_NEWER
from astraflow.core.store_errors import BACKUP_UNWRITABLE as BACKUP_UNWRITABLE
from astraflow.core.store_errors import BLOBS_FOREIGN as BLOBS_FOREIGN
from astraflow.core.store_errors import NODE_FOREIGN as NODE_FOREIGN
from astraflow.core.store_errors import NODE_OLDER as NODE_OLDER
from astraflow.core.store_errors import SHARD_MOVED as SHARD_MOVED
from astraflow.core.store_errors import SHARD_NOT_MOVED as SHARD_NOT_MOVED
from astraflow.core.store_errors import SHARD_NOT_PARKED as SHARD_NOT_PARKED
from astraflow.core.store_errors import SHARD_UNREACHABLE as SHARD_UNREACHABLE
from astraflow.core.store_errors import STORE_BROKEN as STORE_BROKEN
from astraflow.core.store_errors import STORE_CORRUPT as STORE_CORRUPT
from astraflow.core.store_errors import STORE_FENCED as STORE_FENCED
from astraflow.core.store_errors import STORE_FOREIGN as STORE_FOREIGN
from astraflow.core.store_errors import STORE_FULL as STORE_FULL
from astraflow.core.store_errors import STORE_LOCKED as STORE_LOCKED
from astraflow.core.store_errors import STORE_NEWER as STORE_NEWER
from astraflow.core.store_errors import STORE_NOT_EMPTY as STORE_NOT_EMPTY
from astraflow.core.store_errors import STORE_POOLER as STORE_POOLER
from astraflow.core.store_errors import STORE_READ_ONLY as STORE_READ_ONLY
from astraflow.core.store_errors import STORE_REFUSED as STORE_REFUSED
from astraflow.core.store_errors import STORE_UNAVAILABLE as STORE_UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Mapping


# Four lines a row: what it is, what happened, what to do.
# fmt: off

# --- who is asking ---

AUTH_MTLS_REQUIRED = _final("E.AUTH.MTLS_REQUIRED", 401,
    "the listener takes workers with a verified certificate only",
    "give the worker a certificate: auth_mode mtls, tls_cert_file and tls_key_file")
AUTH_INVALID_TOKEN = _final("E.AUTH.INVALID_TOKEN", 401,
    "the token is missing, malformed, expired, revoked, or not for this tenant",
    "get a new token and present it; a worker that held a session handshakes anew")
AUTH_FORBIDDEN = _final("E.AUTH.FORBIDDEN", 403,
    "the token is good, but its role does not allow this action",
    "use a token whose role allows it, or ask an administrator")
AUTH_WEAK_CONFIG = _final("E.AUTH.WEAK_CONFIG", 500,
    "the security settings are too weak to start with",
    "set real secrets and lifetimes inside the documented bounds")
AUTH_BAD_LOGIN = _final("E.AUTH.BAD_LOGIN", 401,
    "there is no such user, or the password is another, or the user may not log in",
    "check the name, the tenant and the password")
AUTH_CSRF = _final("E.AUTH.CSRF", 403,
    "a request with the cookie of a browser session lacks its CSRF token, or comes from another site",
    "send the csrfToken of GET /api/v1/auth/session as X-CSRF-Token, from a page of this server")
AUTH_TOO_MANY = _again("E.AUTH.TOO_MANY", 429,
    "there were too many attempts to log in", "wait as long as Retry-After says")
AUTH_OIDC_UNAVAILABLE = _again("E.AUTH.OIDC_UNAVAILABLE", 503,
    "the OpenID Connect issuer does not answer, or answers nothing that can be used",
    "try again later; if it lasts, check oidc_issuer_url")
AUTH_OIDC_REFUSED = _final("E.AUTH.OIDC_REFUSED", 401,
    "what came back from the OpenID Connect issuer is not the end of a login that this browser began",
    "begin again at /login; the log of the scheduler has the reason")
AUTH_NO_GROUP = _final("E.AUTH.NO_GROUP", 403,
    "none of your groups at the OpenID Connect issuer has a role here",
    "ask an admin to put one of your groups into oidc_roles, or you into one of them")
USER_NOT_FOUND = _final("E.USER.NOT_FOUND", 404,
    "there is no such user, or none that you may see",
    "list the users of the tenant")
USER_CONFLICT = _final("E.USER.CONFLICT", 409,
    "there is a user of this name",
    "choose another name, or change the user that is there")
TENANT_NOT_FOUND = _final("E.TENANT.NOT_FOUND", 404,
    "there is no such tenant",
    "create it first, or list the tenants")
TENANT_CONFLICT = _final("E.TENANT.CONFLICT", 409,
    "the tenant cannot be created or changed so",
    "choose another name, or change the tenant that is there")
LANES_REFUSED = _final("E.LANES.REFUSED", 409,
    "the tenant cannot have so many lanes here",
    "use PostgreSQL and the setting several_lanes, and no more lanes than the store has shards")
TENANT_SUSPENDED = _final("E.TENANT.SUSPENDED", 403,
    "the tenant is suspended", "ask an admin of the site to resume it")
QUOTA_RUNS = _again("E.QUOTA.RUNS", 429,
    "the tenant has as many active runs as its quota allows",
    "wait for runs to end, or ask an admin of the site for more")
QUOTA_TASKS = _again("E.QUOTA.TASKS", 429,
    "the tenant has as many tasks in active runs as its quota allows",
    "wait for runs to end, or ask an admin of the site for more")
QUOTA_WORKERS = _again("E.QUOTA.WORKERS", 429,
    "the tenant has as many workers connected as its quota allows",
    "stop a worker, or ask an admin of the site for more")
QUOTA_DISK = _final("E.QUOTA.DISK", 409,
    "the files that workers of the tenant keep take as much as its quota allows",
    "close resources, or ask an admin of the site for more")
QUOTA_MEMORY = _final("E.QUOTA.MEMORY", 409,
    "the objects that workers of the tenant keep in memory take as much as its quota allows",
    "close resources, or ask an admin of the site for more")
QUOTA_RATE = _again("E.QUOTA.RATE", 429,
    "more requests arrived in a second than are allowed",
    "wait as long as Retry-After says")
TOKEN_NOT_FOUND = _final("E.TOKEN.NOT_FOUND", 404,
    "there is no such token, or none that you may see",
    "list the tokens that you may see")
SECRET_NOT_FOUND = _final("E.SECRET.NOT_FOUND", 404, "there is no such secret in this tenant",
    "check its name, or set it: astra secrets set NAME")
SECRET_SCOPE = _final("E.SECRET.SCOPE", 403, "the secret is not for the package of the node",
    "set the secret again for this package too, or use another")
SECRET_NO_KEY = _final("E.SECRET.NO_KEY", 409, "the scheduler has no master key for secrets",
    "set secrets_key_file, secrets_key or secrets_key_url, and restart the scheduler")
SECRET_UNREADABLE = _final("E.SECRET.UNREADABLE", 500,
    "a stored secret cannot be decrypted: its row or its key was changed",
    "set the secret again, or restore the row and the master key that belong together")
SECRET_KEY_UNAVAILABLE = _again("E.SECRET.KEY_UNAVAILABLE", 503,
    "the key service of the secrets gives no answer that can be used",
    "look at the key service that secrets_key_url names, and at its token")
TOKEN_NOT_RENEWABLE = _final("E.TOKEN.NOT_RENEWABLE", 409,
    "the token cannot be renewed",
    "make a new token")

# --- sessions ---

SESSION_DENIED = _final("E.SESSION.DENIED", 403,
    "the session layer refused this frame or this peer",
    "check the protocol version, the tenant, the sender and the order of the opening frames")
SESSION_UNKNOWN = _again("E.SESSION.UNKNOWN", 404,
    "this scheduler does not know the session",
    "open a new session, register what is held, and send the held results again")
SESSION_MOVED = _again("E.SESSION.MOVED", 421,
    "another scheduler owns this tenant",
    "connect to the given location")
SESSION_STALE_BINDING = _final("E.SESSION.STALE_BINDING", 409,
    "another connection with the same identity took over",
    "stop the work and exit; do not fight back")

# --- frames ---

PROTOCOL_BAD_FRAME = _final("E.PROTOCOL.BAD_FRAME", 400,
    "the message is not a frame: not JSON, not an envelope, too deep, or too large",
    "fix the sender; the connection is closed")
PROTOCOL_BAD_PAYLOAD = _final("E.PROTOCOL.BAD_PAYLOAD", 400,
    "the envelope is good, but the payload does not fit its type",
    "fix the field that the pointer names; the session lives on")
PROTOCOL_MISUSE = _final("E.PROTOCOL.MISUSE", 500,
    "a frame was about to be sent that the state of the session does not allow",
    "fix the caller; nothing was sent")
CMD_UNKNOWN = _final("E.CMD.UNKNOWN", 400,
    "no handler is known for this frame type or node type",
    "check the spelling, and that the package is installed in this version")
CMD_CONCURRENCY_VIOLATION = _again("E.CMD.CONCURRENCY_VIOLATION", 409,
    "work with the same concurrency key is running",
    "wait until it ends; this costs no retry")

# --- dispatch ---

DISPATCH_UNAVAILABLE = _again("E.DISPATCH.UNAVAILABLE", 503,
    "no worker took the task within the allowed number of tries",
    "check that a worker with this package, capacity and affinity is connected")
DISPATCH_DRAINING = _again("E.DISPATCH.DRAINING", 503,
    "the worker takes nothing new, because it drains",
    "send the task to another worker; this costs no retry")
DISPATCH_STALE = _again("E.DISPATCH.STALE", 409,
    "the right to run this attempt had ended, or could not be shown, when it arrived",
    "issue a new attempt; nothing was started")
DISPATCH_OVERLOADED = _again("E.DISPATCH.OVERLOADED", 503,
    "the worker holds as many attempts as it can",
    "send the task to another worker, or wait")
DISPATCH_INVALID = _final("E.DISPATCH.INVALID", 422,
    "the dispatch cannot be sent: its parameters are too large or hold what the wire refuses",
    "pass less by value, or pass it as an artifact")
DISPATCH_WITHDRAWN = _again("E.DISPATCH.WITHDRAWN", 409,
    "the dispatch was not acknowledged in time and was taken back",
    "nothing; the task is dispatched again once this attempt is proved not to run")

# --- tasks ---

TASK_UNKNOWN = _final("E.TASK.UNKNOWN", 404,
    "the report is about a task that is unknown, of another tenant, or not given to this worker",
    "nothing if it came late; else look for a worker that reports what it was not given")
TASK_LOST = _again("E.TASK.LOST", 500,
    "the worker that held the attempt is gone, and the node may not run twice",
    "decide by hand whether the work was done, then run it again")
TASK_LOST_TOO_OFTEN = _final("E.TASK.LOST_TOO_OFTEN", 500,
    "attempt after attempt of this task was lost with its worker",
    "look for work that kills its worker, then raise the loss budget or run it again")
TASK_DRAINED = _again("E.TASK.DRAINED", 503,
    "the worker had to stop before the work was done",
    "nothing; the task runs again on another worker")
TASK_HOST_LOST = _again("E.TASK.HOST_LOST", 503,
    "the process that ran the attempt died, and it is not known that the attempt was the cause",
    "nothing; the task runs again, in a process of its own")
TASK_UPSTREAM_FAILED = _final("E.TASK.UPSTREAM_FAILED", 424,
    "a node that this one needs did not succeed",
    "fix the first node that failed")
TASK_SKIPPED = _final("E.TASK.SKIPPED", 409,
    "the node decided that there was nothing to do",
    "nothing")
TASK_DISABLED = _final("E.TASK.DISABLED", 409,
    "the node is disabled in the workflow",
    "enable the node, or leave it out")
TASK_BRANCH_NOT_TAKEN = _final("E.TASK.BRANCH_NOT_TAKEN", 409,
    "the conditions of the edges lead elsewhere",
    "nothing; read the conditions if it should have run")
TASK_CONDITION_FALSE = _final("E.TASK.CONDITION_FALSE", 409,
    "the condition of the node does not hold",
    "nothing; read the condition if it should have run")
TASK_EXPRESSION = _final("E.TASK.EXPRESSION", 422,
    "an expression of the task has no value",
    "correct the expression, or give it a default: default(x, 0)")
TASK_INPUT_INVALID = _final("E.TASK.INPUT_INVALID", 422,
    "what the edges brought does not fit the schema of the node",
    "look at the results of the nodes upstream, or correct the schema")
TASK_NOT_NEEDED = _final("E.TASK.NOT_NEEDED", 409,
    "the node undoes another one, and there was nothing to undo",
    "nothing: such nodes run when their run fails or is cancelled")
TASK_TOO_MANY = _final("E.TASK.TOO_MANY", 422,
    "a map has too many items, or a run too many tasks",
    "map over less at once: several runs, or lists of lists")
TASK_CANCELLED = _final("E.TASK.CANCELLED", 409,
    "the task was cancelled",
    "nothing; start a new run if the work is wanted after all")
CANCEL_TIMEOUT = _final("CANCEL_TIMEOUT", 504,
    "a cancelled task did not stop within its grace period",
    "check on the worker whether the work still runs")
HEARTBEAT_TIMEOUT = _again("HEARTBEAT_TIMEOUT", 504,
    "an HTTP worker that had started the attempt sent no heartbeat in time",
    "check on the worker why it stopped; a longer heartbeat timeout of the pool gives it more time")
TIMEOUT = _again("E.TIMEOUT", 504,
    "it took longer than allowed",
    "raise the timeout, or make the work smaller")

# --- what runs the handlers ---

RUNNER_FAILURE = _again("E.RUNNER.FAILURE", 500,
    "the handler raised an error",
    "read the message and the stack of the attempt")
RUNNER_TIMEOUT = _again("E.RUNNER.TIMEOUT", 504,
    "the handler did not end within the timeout of its node",
    "raise the timeout of the node, or make the work smaller")
RUNNER_CRASHED = _again("E.RUNNER.CRASHED", 500,
    "the process of the handler died",
    "look at the exit status and the last output of the attempt")
RUNNER_OOM = _again("E.RUNNER.OOM", 500,
    "the process of the handler was killed for want of memory",
    "give the node more memory, or make the work smaller")
RUNNER_LIMIT = _final("E.RUNNER.LIMIT", 500,
    "the handler went beyond a limit of its node",
    "raise the limit that the message names, or make the work smaller")

# --- results ---

RESULT_SEQ_GAP = _final("E.RESULT.SEQ_GAP", 409,
    "the result has a number that no dispatch of its run on this connection had",
    "send the result with the seq of its dispatch; it was not taken")
RESULT_INVALID = _final("E.RESULT.INVALID", 422,
    "the result cannot be written as a frame",
    "return plain JSON values: no NaN, no lone surrogates, not too deep")
RESULT_SCHEMA = _final("E.RESULT.SCHEMA", 422,
    "the result does not fit the schema that the node type declares",
    "correct the node or its schema; `result_schema_policy` says what happens")
ARTIFACT_INLINE_LIMIT = _final("E.ARTIFACT.INLINE_LIMIT", 413,
    "an inline artifact is larger than may travel inline",
    "return a reference to it, and let its bytes stay on the worker")
RESULT_TOO_LARGE = _final("E.RESULT.TOO_LARGE", 413,
    "the result is larger than may travel inline",
    "return an artifact instead")

RESULT_NOT_STORED = _again("E.RESULT.NOT_STORED", 503,
    "a large part of the result could not be stored",
    "see that the scheduler and its blob store can be reached; retry the node")

# --- resources ---

RESOURCE_MISSING = _final("E.RESOURCE.MISSING", 404,
    "there is no such resource, or none that this run may see",
    "check the reference, its tenant and its scope")
RESOURCE_LOST = _final("E.RESOURCE.LOST", 410,
    "the resource is gone together with the worker that held it",
    "run the node again that makes it")
RESOURCE_CONFLICT = _final("E.RESOURCE.CONFLICT", 409,
    "the references of one node live on different workers",
    "make one of them durable, or split the node")
RESOURCE_INVALID = _final("E.RESOURCE.INVALID", 422,
    "the reference or the resource's description is malformed",
    "fix the field that the pointer names")
RESOURCE_DENIED = _final("E.RESOURCE.DENIED", 403,
    "the resource belongs to another scope",
    "use a resource of the same session, run or tenant")
RESOURCE_EXPIRED = _final("E.RESOURCE.EXPIRED", 410,
    "the resource has outlived its time",
    "run the node again that makes it, or ask for a longer life")
RESOURCE_BUSY = _again("E.RESOURCE.BUSY", 409,
    "the resource is in use",
    "try again when it has been released")
RESOURCE_QUOTA = _again("E.RESOURCE.QUOTA", 507,
    "the worker has no room left for resources of this tenant",
    "release resources, or raise the quota")

# --- packages ---

PKG_INVALID = _final("E.PKG.INVALID", 422,
    "the package, its manifest or its digest is not valid",
    "build the package anew and check it with its digest")
PKG_PERMISSION = _final("E.PKG.PERMISSION", 403,
    "the package is not signed by a key that is trusted here, or asks for more than is allowed",
    "sign it with a trusted key, or allow what it asks for")
PKG_INCOMPATIBLE = _final("E.PKG.INCOMPATIBLE", 422,
    "the package does not run on this worker",
    "use a worker with the Python or platform that the manifest asks for")
PKG_CONFLICT = _final("E.PKG.CONFLICT", 409,
    "this version is installed with another digest",
    "publish the changed package under a new version")
PKG_NOT_FOUND = _final("E.PKG.NOT_FOUND", 404,
    "there is no such package or version",
    "check the name and the version, or publish it")
PKG_INSTALL_FAILED = _again("E.PKG.INSTALL_FAILED", 502,
    "the package could not be installed on the worker",
    "look at the message: a download, a dependency or a hook failed; nothing of it was left behind")
PKG_YANKED = _final("E.PKG.YANKED", 409,
    "the version was withdrawn by its publisher",
    "use another version; runs that were accepted before still finish")

# --- middleware ---

NEXT_INVALID = _final("E.NEXT.INVALID", 422,
    "the call of the rest of the chain is malformed, or its caller is no middleware at that place of a chain",
    "call next() only from a middleware, with an object or nothing as its payload")
NEXT_TIMEOUT = _again("E.NEXT.TIMEOUT", 504,
    "the rest of the chain did not end in time",
    "raise the timeout of the call, or make the work smaller")
NEXT_CANCELLED = _final("E.NEXT.CANCELLED", 409,
    "the run or the caller is being stopped, or the host skipped itself: the rest of the chain has no result",
    "nothing, or let the host return a result instead of skipping itself")
NEXT_FAILED = _again("E.NEXT.FAILED", 500,
    "the rest of the chain failed and does not say how, or its result is too large for an answer",
    "read the error of the called task; return an artifact instead of a large result")
NEXT_LIMIT = _final("E.NEXT.LIMIT", 409,
    "the middleware called the rest of the chain more often than allowed",
    "call it less often, or raise the limit")

# --- definitions ---

RUN_SIGNALS_FULL = _final("E.RUN.SIGNALS_FULL", 409,
    "too many signals of the run wait for a node that takes them",
    "send fewer, or cancel the run")
RUN_CANCELLING = _final("E.RUN.CANCELLING", 409,
    "the run is being cancelled",
    "nothing; start a new run if the work is wanted after all")
APPROVAL_NOT_OPEN = _final("E.APPROVAL.NOT_OPEN", 409,
    "nobody is asked for a decision at this node: it was decided, or the run has not come so far",
    "look at the node: it says who decided")
APPROVAL_FORM = _final("E.APPROVAL.FORM", 422,
    "what was filled in does not fit the form of the approval",
    "fix the field that the pointer names")
WORKFLOW_INVALID = _final("E.WORKFLOW.INVALID", 422,
    "the workflow definition does not have the right shape",
    "fix the field that the pointer names")
WORKFLOW_CYCLE = _final("E.WORKFLOW.CYCLE", 422,
    "the edges go round in a circle",
    "take away one edge of the named circle")
WORKFLOW_SELF_EDGE = _final("E.WORKFLOW.SELF_EDGE", 422,
    "an edge leads from a node to itself",
    "take the edge away")
WORKFLOW_UNKNOWN_NODE = _final("E.WORKFLOW.UNKNOWN_NODE", 422,
    "an edge or a binding names a node that is not there",
    "add the node, or correct the name")
WORKFLOW_UNKNOWN_PORT = _final("E.WORKFLOW.UNKNOWN_PORT", 422,
    "an edge names a port that the node's type does not have",
    "use one of the ports that the manifest lists")
WORKFLOW_UNKNOWN_TYPE = _final("E.WORKFLOW.UNKNOWN_TYPE", 422,
    "no known package has a node of this type",
    "publish the package, or correct the type and version")
WORKFLOW_UNKNOWN_PACKAGE = _final("E.WORKFLOW.UNKNOWN_PACKAGE", 422,
    "no known package or version fits what the node names",
    "publish the package, or correct its name and version")
WORKFLOW_DOUBLE_INPUT = _final("E.WORKFLOW.DOUBLE_INPUT", 422,
    "two edges lead into a port that takes one",
    "take one edge away, or let the port take several")
WORKFLOW_DUPLICATE_ID = _final("E.WORKFLOW.DUPLICATE_ID", 422,
    "two nodes or two edges have the same id",
    "give each its own id")
WORKFLOW_BAD_ID = _final("E.WORKFLOW.BAD_ID", 422,
    "the id of a workflow or a node is not a UUID",
    "use a UUID, which stays unique when workflows are imported")
WORKFLOW_BAD_TEXT = _final("E.WORKFLOW.BAD_TEXT", 422,
    "a text is empty, or holds control or direction characters",
    "write it with characters that can be seen")
WORKFLOW_BAD_PATH = _final("E.WORKFLOW.BAD_PATH", 422,
    "a binding's path is malformed or leads nowhere",
    "correct the path that the pointer names")
WORKFLOW_EXPRESSION = _final("E.WORKFLOW.EXPRESSION", 422,
    "an expression cannot be read, or names something that is not there",
    "correct the expression that the pointer names")
WORKFLOW_LIMIT = _final("E.WORKFLOW.LIMIT", 422,
    "the workflow is larger than allowed",
    "split it, or raise the limit that the message names")
WORKFLOW_SCHEMA = _final("E.WORKFLOW.SCHEMA", 422,
    "a schema in the definition is no JSON Schema, or one that costs too much",
    "correct the schema at the place that the pointer names")
WORKFLOW_PARAMETER = _final("E.WORKFLOW.PARAMETER", 422,
    "a parameter does not fit the schema of its node",
    "correct the parameter that the pointer names, or let an edge or an expression give it")
WORKFLOW_EDGE_TYPE = _final("E.WORKFLOW.EDGE_TYPE", 422,
    "what an edge reads can never be what its target takes",
    "join ports of types that fit, or put a node between them that makes one of the other")
WORKFLOW_INPUT = _final("E.WORKFLOW.INPUT", 422,
    "the inputs of the run are not those that the workflow declares",
    "give what the workflow's `inputs` declare, each as its schema says")
WORKFLOW_CALL = _final("E.WORKFLOW.CALL", 422,
    "a workflow that a node calls is not there, or cannot be called",
    "publish the workflow, name a version that it has, and let no workflow call itself")
WORKFLOW_UNKNOWN_FIELD = _final("E.WORKFLOW.UNKNOWN_FIELD", 422,
    "the definition has a field that means nothing here; a warning, nothing is refused for it",
    "correct its name, or begin it with `x-` if it is your own")
WORKFLOW_NOT_FOUND = _final("E.WORKFLOW.NOT_FOUND", 404,
    "there is no such workflow, or none that you may see",
    "check the id and the tenant")
WORKFLOW_CONFLICT = _final("E.WORKFLOW.CONFLICT", 409,
    "the workflow was saved or removed by somebody else meanwhile",
    "load the stored version, put the changes into it, and save that")

WORKFLOW_NO_DRAFT = _final("E.WORKFLOW.NO_DRAFT", 404,
    "the workflow has no draft",
    "save one, or use a published version")
WORKFLOW_NO_PIN = _final("E.WORKFLOW.NO_PIN", 404,
    "the node has no pinned result",
    "list the pinned results of the workflow")
WORKFLOW_STALE_DRAFT = _final("E.WORKFLOW.STALE_DRAFT", 409,
    "a newer version was published since the draft was begun",
    "put the changes of that version into the draft and save it with its number as baseVersion, or publish with force")

# --- runs ---

RUN_NOT_FOUND = _final("E.RUN.NOT_FOUND", 404,
    "there is no such run, or none that you may see",
    "check the id and the tenant")
RUN_REMOVED = _final("E.RUN.REMOVED", 410,
    "the run of this idempotency key was accepted and has been removed by retention; it is not run again",
    "use a new key to run it again; a key may be used anew a day after its first use")
RUN_NODE_NOT_FOUND = _final("E.RUN.NODE_NOT_FOUND", 404,
    "the run has no such node",
    "use an id of the run's definition")
RUN_TERMINAL = _final("E.RUN.TERMINAL", 409,
    "the run has already ended",
    "nothing; its outcome stands")
RUN_NOT_TERMINAL = _again("E.RUN.NOT_TERMINAL", 409,
    "the run has not ended yet",
    "wait for its end, or cancel it")
RUN_IDEMPOTENCY_CONFLICT = _final("E.RUN.IDEMPOTENCY_CONFLICT", 409,
    "the same idempotency key was used with another request",
    "use a new key, or repeat the first request unchanged")

WORKER_LOCKED = _again("E.WORKER.LOCKED", 409,
    "another worker process uses this data folder",
    "end that one, or give this one a folder of its own with `--data-dir`")
WORKER_UNAVAILABLE = _again("E.WORKER.UNAVAILABLE", 503,
    "the one worker that could do it has no session now",
    "try again when it is back")
WORKER_NOT_FOUND = _final("E.WORKER.NOT_FOUND", 404,
    "there is no such worker, or not in this tenant",
    "list the workers with `astra workers`")

# --- everything ---

REQUEST_INVALID = _final("E.REQUEST.INVALID", 400,
    "the request is malformed",
    "fix the field that the pointer names")
REQUEST_TOO_LARGE = _final("E.REQUEST.TOO_LARGE", 413,
    "the request is larger than allowed",
    "send less, or send it as an artifact")
REQUEST_NO_ROUTE = _final("E.REQUEST.NO_ROUTE", 404,
    "there is nothing at this path",
    "check the path against the description of the API")
REQUEST_METHOD = _final("E.REQUEST.METHOD", 405,
    "this path does not take this method",
    "use one of the methods that the header Allow names")
REQUEST_RANGE = _final("E.REQUEST.RANGE", 416,
    "the file ends before the range that was asked for begins",
    "ask for the size first, or for the whole file")
REQUEST_MEDIA_TYPE = _final("E.REQUEST.MEDIA_TYPE", 415,
    "the body is not of a kind that is read here",
    "send application/json, plain or compressed with gzip")
SCHEDULER_NOT_READY = _again("E.SCHEDULER.NOT_READY", 503,
    "this scheduler does not serve now: it starts, its store does not answer, or another scheduler owns the store",
    "try again after Retry-After, or ask another scheduler of the same store")
SERVER_UNREACHABLE = _again("E.SERVER.UNREACHABLE", 503,
    "the scheduler does not respond where it should be",
    "start one with `astra up`, or say where it is with ASTRA_SERVER and ASTRA_TOKEN")
SERVER_FOREIGN = _final("E.SERVER.FOREIGN", 502,
    "what answers there is not a scheduler of AstraFlow",
    "check the address in ASTRA_SERVER")
INPUT_UNREADABLE = _final("E.INPUT.UNREADABLE", 400,
    "a file or a value that a command was given cannot be read",
    "check the path, and that it holds JSON")
INPUT_UNCONFIRMED = _final("E.INPUT.UNCONFIRMED", 400,
    "the command cannot be undone, and nobody was there to confirm it",
    "give --yes if it is meant")
CONFIG_INVALID = _final("E.CONFIG.INVALID", 500,
    "the settings contradict each other or a rule",
    "correct the setting that the message names; nothing was started")
OVERLOADED = _again("E.OVERLOADED", 503,
    "more work is waiting than may wait",
    "try again after the given time")
INTERNAL = _again("E.INTERNAL", 500,
    "something broke inside AstraFlow",
    "report it with the id of the request; nothing was half done")

# fmt: on

CATALOGUE: Mapping[str, Code] = MappingProxyType(
    {row.code: row for row in tuple(globals().values()) if isinstance(row, Code)}
)
