"""The package host: the process that runs package code. `python -m astraflow_sdk.host SETTINGS`.

A host is two processes. The **guard** is started by the worker, is as small as Python allows and runs no package code.
It forks the **host** proper, which leads a session and a process group of its own. The guard holds the kernel timer of
the fence and a life line to the worker; when the line closes, the fence passes or the host ends, it kills whatever is
left below it and then ends as the host ended. Nothing that package code does inside the host (a blocked loop, a
held interpreter lock, its own timer, a daemon of its own) can keep the fence from holding.
"""
