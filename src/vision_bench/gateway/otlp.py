"""Whether spans are wanted, and where they go. OpenTelemetry itself is not imported here."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from urllib.parse import urlsplit

from vision_bench.errors import InvalidSettings, MissingExtra

TRACES_PATH = "/v1/traces"
DEFAULT_ENDPOINT = "http://localhost:4318"
"""The standard's, for OTLP over HTTP."""

NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def wanted_endpoint(setting: str | None, environ: Mapping[str, str]) -> str | None:
    """The URL to which spans are posted; None: none are made.

    Asked for by ``setting`` (GATEWAY_OTLP_ENDPOINT, which wins where both name a collector), by
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, by OTEL_EXPORTER_OTLP_ENDPOINT or by OTEL_TRACES_EXPORTER=otlp. Refused
    before all of them by OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none. An empty variable is not set.

    Raises:
        InvalidSettings: a variable asks for what the gateway cannot do.
        MissingExtra: spans are wanted and OpenTelemetry is not installed.
    """
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return None
    endpoint = _named(setting, environ)
    if endpoint is None and not exporter:
        return None
    if exporter not in ("", "otlp"):
        raise InvalidSettings(f"OTEL_TRACES_EXPORTER={exporter!r}: the gateway knows otlp and none")
    name = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
    name = name if environ.get(name) else "OTEL_EXPORTER_OTLP_PROTOCOL"
    if (protocol := environ.get(name) or "http/protobuf") != "http/protobuf":
        raise InvalidSettings(
            f"{name}={protocol!r}: the gateway speaks http/protobuf alone; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to "
            "that, and the endpoint to the collector's HTTP port, usually 4318"
        )
    if not _is_installed():
        raise MissingExtra("otel", "sending spans (GATEWAY_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT)")
    return endpoint or DEFAULT_ENDPOINT + TRACES_PATH


def checked(url: str) -> str:
    """``url``, which must be an http or https address.

    Raises:
        ValueError: it is none, in words that follow its name.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, an IPv6 address without its bracket
        usable = False
    if not usable:
        raise ValueError("must be an http:// or https:// address such as http://127.0.0.1:4318")
    return url


def shown(url: str) -> str:
    """Scheme, host and port: the rest may hold a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _named(setting: str | None, environ: Mapping[str, str]) -> str | None:
    if setting:
        return setting.rstrip("/") + TRACES_PATH
    for name, path in (("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""), ("OTEL_EXPORTER_OTLP_ENDPOINT", TRACES_PATH)):
        if url := environ.get(name):
            try:
                return checked(url).rstrip("/") + path if path else checked(url)
            except ValueError as problem:
                shown_url = "" if "@" in url else f"={url!r}"
                raise InvalidSettings(f"{name}{shown_url}: {problem}") from problem
    return None


def _is_installed() -> bool:
    try:
        return all(importlib.util.find_spec(module) is not None for module in NEEDED)
    except ModuleNotFoundError:  # not even the namespace above
        return False
