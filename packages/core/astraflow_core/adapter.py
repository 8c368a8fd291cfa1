"""The entry point of the manifest: each handler by its name."""

from __future__ import annotations

from astraflow_core import files, flow, script, text, web

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
