"""A collector of traces: OTLP over HTTP on loopback, decoded with the published messages of the protocol."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector", "ReceivedSpan", "collecting"]

FAILED = 2
"""The code of a status."""


class ReceivedSpan(NamedTuple):
    """A span as it was received; ids are hexadecimal, `parent` is empty for the first of a trace."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    is_error: bool
    began_ns: int
    ended_ns: int

    @property
    def header(self) -> str:
        return f"00-{self.trace}-{self.id}-01"


class Collector:
    """Keeps what it receives."""

    def __init__(self) -> None:
        self._spans: list[ReceivedSpan] = []
        self._lock = threading.Lock()
        self.url = ""

    def spans(self, trace: str) -> list[ReceivedSpan]:
        with self._lock:
            return [one for one in self._spans if one.trace == trace]

    def all(self) -> list[ReceivedSpan]:
        with self._lock:
            return list(self._spans)

    def take(self, raw: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(raw)
        for group in request.resource_spans:
            resource = {one.key: _value(one.value) for one in group.resource.attributes}
            for scope in group.scope_spans:
                for span in scope.spans:
                    received = ReceivedSpan(
                        str(resource["service.name"]),
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        {one.key: _value(one.value) for one in span.attributes},
                        span.status.code == FAILED,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                    )
                    with self._lock:
                        self._spans.append(received)


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            assert self.path == "/v1/traces", self.path
            collector.take(raw)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """It says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
