"""The entry point of the manifest: each handler by its name."""

from __future__ import annotations

from astraflow_core import files, flow, loop, middleware, script, text, web

__all__ = ["CoreAdapter"]


class CoreAdapter:
    noop = staticmethod(flow.noop)
    echo = staticmethod(flow.echo)
    sleep = staticmethod(flow.sleep)
    fail = staticmethod(flow.fail)
    log = staticmethod(flow.log)
    stream = staticmethod(text.stream)
    template = staticmethod(text.template)
    python = staticmethod(script.python)
    http = staticmethod(web.request)
    file = staticmethod(files.file)
    read_file = staticmethod(files.read_file)
    retry = staticmethod(middleware.retry)
    cache = staticmethod(middleware.cache)
    rate_limit = staticmethod(middleware.rate_limit)
    timeout = staticmethod(middleware.timeout)
    log_calls = staticmethod(middleware.log_calls)
    loop = staticmethod(loop.loop)
