"""When spans are exported: only if that is configured."""

from __future__ import annotations

import sys

import pytest

from astraflow.core import errors
from astraflow.observe.spans import open_span_export
from tests.tables import each_row

URL = "http://127.0.0.1:9"


@each_row(
    ("endpoint", "environ", "is_open"),
    [
        (None, {}, False),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": URL}, True),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{URL}/v1/traces"}, True),
        (URL, {}, True),
        (URL, {"OTEL_SDK_DISABLED": "true"}, False),
        (URL, {"OTEL_TRACES_EXPORTER": "none"}, False),
        (URL, {"OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_an_export_is_opened_if_it_is_configured(
    endpoint: str | None, environ: dict[str, str], is_open: bool
) -> None:
    export = open_span_export("test", "one", endpoint, environ)
    assert (export is not None) is is_open
    if export is not None:
        assert export.samples("4bf92f3577b34da6a3ce929d0e0e4736")
        export.close()


def test_an_export_that_is_configured_and_not_installed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(errors.Refused, match="not installed") as caught:
        open_span_export("test", "one", URL, {})
    assert caught.value.detail == {"hint": "pip install 'astraflow[otel]'"}
