/** What to do about an error of a step, by its code: as docs/reference/errors.md says it, which a test checks. */
export const errorHelp: Readonly<Record<string, { readonly says: string; readonly help: string }>> = {
  "E.DISPATCH.PUSH_REFUSED": {
    says: "The URL of an HTTP pool refused the task, or could not be reached.",
    help: "Check the URL and the secret of the pool, and the log of its worker.",
  },
  "E.SECRET.NOT_FOUND": {
    says: "There is no such secret in this tenant.",
    help: "Check its name, or set it: astra secrets set NAME.",
  },
  "E.SECRET.SCOPE": {
    says: "The secret is not for the package of the node.",
    help: "Set the secret again for this package too, or use another.",
  },
  "E.SECRET.NO_KEY": {
    says: "The scheduler has no master key for secrets.",
    help: "Set secrets_key_file, secrets_key or secrets_key_url, and restart the scheduler.",
  },
  "E.SECRET.UNREADABLE": {
    says: "A stored secret cannot be decrypted: its row or its key was changed.",
    help: "Set the secret again, or restore the row and the master key that belong together.",
  },
  "E.SECRET.KEY_UNAVAILABLE": {
    says: "The key service of the secrets gives no answer that can be used.",
    help: "Look at the key service that secrets_key_url names, and at its token.",
  },
  "E.CMD.UNKNOWN": {
    says: "No handler is known for this frame type or node type.",
    help: "Check the spelling, and that the package is installed in this version.",
  },
  "E.CMD.CONCURRENCY_VIOLATION": {
    says: "Work with the same concurrency key is running.",
    help: "Wait until it ends; this costs no retry.",
  },
  "E.DISPATCH.UNAVAILABLE": {
    says: "No worker took the task within the allowed number of tries.",
    help: "Check that a worker with this package, capacity and affinity is connected.",
  },
  "E.DISPATCH.DRAINING": {
    says: "The worker takes nothing new, because it drains.",
    help: "Send the task to another worker; this costs no retry.",
  },
  "E.DISPATCH.STALE": {
    says: "The right to run this attempt had ended, or could not be shown, when it arrived.",
    help: "Issue a new attempt; nothing was started.",
  },
  "E.DISPATCH.OVERLOADED": {
    says: "The worker holds as many attempts as it can.",
    help: "Send the task to another worker, or wait.",
  },
  "E.DISPATCH.INVALID": {
    says: "The dispatch cannot be sent: its parameters are too large or hold what the wire refuses.",
    help: "Pass less by value, or pass it as an artifact.",
  },
  "E.DISPATCH.WITHDRAWN": {
    says: "The dispatch was not acknowledged in time and was taken back.",
    help: "Nothing; the task is dispatched again once this attempt is proved not to run.",
  },
  "E.TASK.UNKNOWN": {
    says: "The report is about a task that is unknown, of another tenant, or not given to this worker.",
    help: "Nothing if it came late; else look for a worker that reports what it was not given.",
  },
  "E.TASK.LOST": {
    says: "The worker that held the attempt is gone, and the node may not run twice.",
    help: "Decide by hand whether the work was done, then run it again.",
  },
  "E.TASK.LOST_TOO_OFTEN": {
    says: "Attempt after attempt of this task was lost with its worker.",
    help: "Look for work that kills its worker, then raise the loss budget or run it again.",
  },
  "E.TASK.DRAINED": {
    says: "The worker had to stop before the work was done.",
    help: "Nothing; the task runs again on another worker.",
  },
  "E.TASK.HOST_LOST": {
    says: "The process that ran the attempt died, and it is not known that the attempt was the cause.",
    help: "Nothing; the task runs again, in a process of its own.",
  },
  "E.TASK.UPSTREAM_FAILED": {
    says: "A node that this one needs did not succeed.",
    help: "Fix the first node that failed.",
  },
  "E.TASK.SKIPPED": { says: "The node decided that there was nothing to do.", help: "Nothing." },
  "E.TASK.DISABLED": {
    says: "The node is disabled in the workflow.",
    help: "Enable the node, or leave it out.",
  },
  "E.TASK.BRANCH_NOT_TAKEN": {
    says: "The conditions of the edges lead elsewhere.",
    help: "Nothing; read the conditions if it should have run.",
  },
  "E.TASK.CONDITION_FALSE": {
    says: "The condition of the node does not hold.",
    help: "Nothing; read the condition if it should have run.",
  },
  "E.TASK.EXPRESSION": {
    says: "An expression of the task has no value.",
    help: "Correct the expression, or give it a default: default(x, 0).",
  },
  "E.TASK.INPUT_INVALID": {
    says: "What the edges brought does not fit the schema of the node.",
    help: "Look at the results of the nodes upstream, or correct the schema.",
  },
  "E.TASK.NOT_NEEDED": {
    says: "The node undoes another one, and there was nothing to undo.",
    help: "Nothing: such nodes run when their run fails or is cancelled.",
  },
  "E.TASK.TOO_MANY": {
    says: "A map has too many items, or a run too many tasks.",
    help: "Map over less at once: several runs, or lists of lists.",
  },
  "E.TASK.CANCELLED": {
    says: "The task was cancelled.",
    help: "Nothing; start a new run if the work is wanted after all.",
  },
  CANCEL_TIMEOUT: {
    says: "A cancelled task did not stop within its grace period.",
    help: "Check on the worker whether the work still runs.",
  },
  HEARTBEAT_TIMEOUT: {
    says: "An HTTP worker that had started the attempt sent no heartbeat in time.",
    help: "Check on the worker why it stopped; a longer heartbeat timeout of the pool gives it more time.",
  },
  "E.TIMEOUT": { says: "It took longer than allowed.", help: "Raise the timeout, or make the work smaller." },
  "E.RUNNER.FAILURE": {
    says: "The handler raised an error.",
    help: "Read the message and the stack of the attempt.",
  },
  "E.RUNNER.TIMEOUT": {
    says: "The handler did not end within the timeout of its node.",
    help: "Raise the timeout of the node, or make the work smaller.",
  },
  "E.RUNNER.CRASHED": {
    says: "The process of the handler died.",
    help: "Look at the exit status and the last output of the attempt.",
  },
  "E.RUNNER.OOM": {
    says: "The process of the handler was killed for want of memory.",
    help: "Give the node more memory, or make the work smaller.",
  },
  "E.RUNNER.LIMIT": {
    says: "The handler went beyond a limit of its node.",
    help: "Raise the limit that the message names, or make the work smaller.",
  },
  "E.RESULT.SEQ_GAP": {
    says: "The result has a number that no dispatch of its run on this connection had.",
    help: "Send the result with the seq of its dispatch; it was not taken.",
  },
  "E.RESULT.INVALID": {
    says: "The result cannot be written as a frame.",
    help: "Return plain JSON values: no NaN, no lone surrogates, not too deep.",
  },
  "E.RESULT.SCHEMA": {
    says: "The result does not fit the schema that the node type declares.",
    help: "Correct the node or its schema; `result_schema_policy` says what happens.",
  },
  "E.ARTIFACT.INLINE_LIMIT": {
    says: "An inline artifact is larger than may travel inline.",
    help: "Return a reference to it, and let its bytes stay on the worker.",
  },
  "E.RESULT.TOO_LARGE": {
    says: "The result is larger than may travel inline.",
    help: "Return an artifact instead.",
  },
  "E.RESULT.NOT_STORED": {
    says: "A large part of the result could not be stored.",
    help: "See that the scheduler and its blob store can be reached; retry the node.",
  },
  "E.RESOURCE.MISSING": {
    says: "There is no such resource, or none that this run may see.",
    help: "Check the reference, its tenant and its scope.",
  },
  "E.RESOURCE.LOST": {
    says: "The resource is gone together with the worker that held it.",
    help: "Run the node again that makes it.",
  },
  "E.RESOURCE.CONFLICT": {
    says: "The references of one node live on different workers.",
    help: "Make one of them durable, or split the node.",
  },
  "E.RESOURCE.INVALID": {
    says: "The reference or the resource's description is malformed.",
    help: "Fix the field that the pointer names.",
  },
  "E.RESOURCE.DENIED": {
    says: "The resource belongs to another scope.",
    help: "Use a resource of the same session, run or tenant.",
  },
  "E.RESOURCE.EXPIRED": {
    says: "The resource has outlived its time.",
    help: "Run the node again that makes it, or ask for a longer life.",
  },
  "E.RESOURCE.BUSY": { says: "The resource is in use.", help: "Try again when it has been released." },
  "E.RESOURCE.QUOTA": {
    says: "The worker has no room left for resources of this tenant.",
    help: "Release resources, or raise the quota.",
  },
  "E.PKG.INVALID": {
    says: "The package, its manifest or its digest is not valid.",
    help: "Build the package anew and check it with its digest.",
  },
  "E.PKG.PERMISSION": {
    says: "The package is not signed by a key that is trusted here, or asks for more than is allowed.",
    help: "Sign it with a trusted key, or allow what it asks for.",
  },
  "E.PKG.INCOMPATIBLE": {
    says: "The package does not run on this worker.",
    help: "Use a worker with the Python or platform that the manifest asks for.",
  },
  "E.PKG.CONFLICT": {
    says: "This version is installed with another digest.",
    help: "Publish the changed package under a new version.",
  },
  "E.PKG.NOT_FOUND": {
    says: "There is no such package or version.",
    help: "Check the name and the version, or publish it.",
  },
  "E.PKG.INSTALL_FAILED": {
    says: "The package could not be installed on the worker.",
    help: "Look at the message: a download, a dependency or a hook failed; nothing of it was left behind.",
  },
  "E.PKG.YANKED": {
    says: "The version was withdrawn by its publisher.",
    help: "Use another version; runs that were accepted before still finish.",
  },
  "E.NEXT.INVALID": {
    says: "The call of the rest of the chain is malformed, or its caller is no middleware at that place of a chain.",
    help: "Call next() only from a middleware, with an object or nothing as its payload.",
  },
  "E.NEXT.TIMEOUT": {
    says: "The rest of the chain did not end in time.",
    help: "Raise the timeout of the call, or make the work smaller.",
  },
  "E.NEXT.CANCELLED": {
    says: "The run or the caller is being stopped, or the host skipped itself: the rest of the chain has no result.",
    help: "Nothing, or let the host return a result instead of skipping itself.",
  },
  "E.NEXT.FAILED": {
    says: "The rest of the chain failed and does not say how, or its result is too large for an answer.",
    help: "Read the error of the called task; return an artifact instead of a large result.",
  },
  "E.NEXT.LIMIT": {
    says: "The middleware called the rest of the chain more often than allowed.",
    help: "Call it less often, or raise the limit.",
  },
  "E.WORKFLOW.EXPRESSION": {
    says: "An expression cannot be read, or names something that is not there.",
    help: "Correct the expression that the pointer names.",
  },
  "E.WORKFLOW.PARAMETER": {
    says: "A parameter does not fit the schema of its node.",
    help: "Correct the parameter that the pointer names, or let an edge or an expression give it.",
  },
  "E.WORKFLOW.INPUT": {
    says: "The inputs of the run are not those that the workflow declares.",
    help: "Give what the workflow's `inputs` declare, each as its schema says.",
  },
  "E.WORKFLOW.CALL": {
    says: "A workflow that a node calls is not there, or cannot be called.",
    help: "Publish the workflow, name a version that it has, and let no workflow call itself.",
  },
  "E.WORKER.UNAVAILABLE": {
    says: "The one worker that could do it has no session now.",
    help: "Try again when it is back.",
  },
};
