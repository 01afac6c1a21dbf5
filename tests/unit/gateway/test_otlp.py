"""Whether spans are wanted, and where they go."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from vision_bench.errors import InvalidSettings, MissingExtra
from vision_bench.gateway import otlp
from vision_bench.gateway.otlp import checked, shown, wanted_endpoint

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("setting", "environ", "endpoint"),
    [
        (None, {}, None),
        (None, {BASE: "", "OTEL_TRACES_EXPORTER": ""}, None),
        (None, {"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m"}, None),
        (None, {BASE: "http://c:4318"}, "http://c:4318/v1/traces"),
        (None, {BASE: "https://c/otlp/"}, "https://c/otlp/v1/traces"),
        (None, {BASE: "http://c:4318", TRACES: "http://t/any/"}, "http://t/any/"),
        (None, {"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces"),
        ("http://g:1/", {}, "http://g:1/v1/traces"),
        ("http://g:1", {BASE: "http://c:4318", TRACES: "http://t"}, "http://g:1/v1/traces"),
        ("http://g:1", {"OTEL_TRACES_EXPORTER": "none"}, None),
        ("http://g:1", {"OTEL_SDK_DISABLED": "TRUE"}, None),
        (None, {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "zipkin"}, None),
        (None, {BASE: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://c/v1/traces"),
        (
            None,
            {
                BASE: "http://c",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            "http://c/v1/traces",
        ),
        (None, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None),
    ],
)
def test_who_asks_and_who_refuses(setting: str | None, environ: dict[str, str], endpoint: str | None) -> None:
    """Our setting before the traces' own variable before the common one; the two words that refuse before all."""
    assert wanted_endpoint(setting, environ) == endpoint


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER='zipkin': "),
        ({"OTEL_TRACES_EXPORTER": "otlp,console"}, "OTEL_TRACES_EXPORTER='otlp,console': "),
        ({BASE: "collector:4317"}, f"{BASE}='collector:4317': must be an http"),
        ({TRACES: "http://[::1"}, f"{TRACES}='http://\\[::1': must be an http"),
        ({BASE: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL='grpc': .*4318"),
        ({BASE: "http://c", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "_TRACES_PROTOCOL='http/json': "),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(environ: dict[str, str], message: str) -> None:
    """The variable, its value and the remedy, in one line."""
    with pytest.raises(InvalidSettings, match=f"^.*{message}") as caught:
        wanted_endpoint(None, environ)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    """Neither where a URL is refused nor where it is named in the log."""
    with pytest.raises(InvalidSettings) as caught:
        wanted_endpoint(None, {BASE: "ftp://me:hunter2@c"})
    assert "hunter2" not in str(caught.value)
    assert shown("https://me:hunter2@c:1/v1/traces?key=hunter2") == "https://c:1"


@pytest.mark.parametrize("missing", [0, 1, ModuleNotFoundError("No module named 'opentelemetry'")])
def test_a_missing_extra_is_named_when_it_is_needed(monkeypatch: pytest.MonkeyPatch, missing: Any) -> None:
    """With the line that installs it; who asks for no spans never hears of it."""

    def find_spec(name: str) -> object:
        if isinstance(missing, Exception):
            raise missing
        return None if name == otlp.NEEDED[missing] else object()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(MissingExtra, match=r"pip install 'vision-bench\[otel\]'"):
        wanted_endpoint("http://g:1", {})
    assert wanted_endpoint(None, {}) is None
    assert wanted_endpoint("http://g:1", {"OTEL_TRACES_EXPORTER": "none"}) is None


@pytest.mark.parametrize("url", ["", "c", "c:4318", "ftp://c", "http://", "http://c:port", "http://c:0", "http://[::1"])
def test_an_address_is_http(url: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ValueError, match="http://127"):
        checked(url)
