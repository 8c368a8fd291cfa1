"""Spans, exported over OTLP by the OpenTelemetry SDK. Nothing of it is loaded unless tracing is configured.

Our spans have ids of their own and are made when they have ended, so they go to the processor of the SDK without a
tracer. Sampling, batching, the resource and the exporter are the SDK's, and so are its variables (`OTEL_…`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import msgspec

from astraflow import __version__
from astraflow.core import errors
from astraflow.core.trace_context import TraceContext

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NS_PER_MS: Final = 1_000_000
MAX_MESSAGE_CHARS: Final = 1_024
CLOSE_S: Final = 3.0
"""How long a process that ends waits for a collector that does not respond."""

SpanKind = Literal["internal", "consumer"]


class FinishedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Something that took time and has ended. Times are wall-clock milliseconds."""

    name: str
    context: TraceContext
    parent_id: str | None
    began_ms: int
    ended_ms: int
    kind: SpanKind = "internal"
    is_error: bool = False
    message: str = ""
    attributes: Mapping[str, str | int]


class SpanExport(Protocol):
    """Where spans go."""

    def samples(self, trace_id: str) -> bool:
        """Whether a new trace is recorded."""

    def put(self, span: FinishedSpan) -> None:
        """Export a span, some time later. Never waits, never raises; what cannot be exported is dropped."""

    def close(self) -> None:
        """Export what is left, and wait for that for some seconds."""


def open_span_export(
    service: str,
    instance: str,
    endpoint: str | None,
    environ: Mapping[str, str] = os.environ,
) -> SpanExport | None:
    """The export that the setting `otlp_endpoint` or the standard variables configure; None if none do.

    Raises:
        Refused: it is configured, and what it needs is not installed.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if environ.get("OTEL_TRACES_EXPORTER", "otlp") == "none":
        return None
    if endpoint is None and not any(environ.get(name) for name in _ENDPOINTS):
        return None
    try:
        return _OtlpExport(service, instance, endpoint)
    except ImportError as error:
        raise errors.Refused(
            errors.CONFIG_INVALID,
            f"tracing is configured, and OpenTelemetry is not installed: {error.name}",
            detail={"hint": "pip install 'astraflow[otel]'"},
            pointer="/otlp_endpoint",
        ) from error


class _OtlpExport:
    def __init__(self, service: str, instance: str, endpoint: str | None) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        url = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
        self._exporter = OTLPSpanExporter(endpoint=url)
        self._processor = BatchSpanProcessor(self._exporter)
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
        resource = Resource.create(
            {**named, "service.version": __version__, "service.instance.id": instance}
        )
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(self._processor)
        self._scope = InstrumentationScope("astraflow", __version__)

    def samples(self, trace_id: str) -> bool:
        from opentelemetry.sdk.trace.sampling import Decision

        decided = self._provider.sampler.should_sample(None, int(trace_id, 16), "run")
        return decided.decision is Decision.RECORD_AND_SAMPLE

    def put(self, span: FinishedSpan) -> None:
        if span.context.is_sampled:
            self._processor.on_end(self._readable(span))

    def close(self) -> None:
        # The SDK waits for half a minute; an exporter that is shut down stops trying.
        give_up = threading.Timer(CLOSE_S, self._exporter.shutdown)
        give_up.start()
        try:
            self._provider.shutdown()
        finally:
            give_up.cancel()

    def _readable(self, span: FinishedSpan) -> Any:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import ReadableSpan

        code = trace.StatusCode.ERROR if span.is_error else trace.StatusCode.OK
        message = span.message[:MAX_MESSAGE_CHARS] if span.is_error else None
        is_consumer = span.kind == "consumer"
        return ReadableSpan(
            name=span.name,
            context=_context(span.context, span.context.span_id, is_remote=False),
            parent=None
            if span.parent_id is None
            else _context(span.context, span.parent_id, is_remote=True),
            resource=self._provider.resource,
            attributes=span.attributes,
            kind=trace.SpanKind.CONSUMER if is_consumer else trace.SpanKind.INTERNAL,
            status=trace.Status(code, message),
            start_time=span.began_ms * _NS_PER_MS,
            end_time=span.ended_ms * _NS_PER_MS,
            instrumentation_scope=self._scope,
        )


def _context(trace_context: TraceContext, span_id: str, *, is_remote: bool) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace_context.trace_id, 16), int(span_id, 16), is_remote, flags)
