"""The OpenAPI document against the running gateway: what it says of statuses, types and headers is true.

schemathesis makes the requests from the document, good ones and bad ones; the upstream answers in every way it can.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.specs.openapi import checks
from tests.integration.gateway_rig import Rig, gateway
from tests.integration.stub_upstream import (
    Behaviour,
    StubRequest,
    answers,
    reset,
    streams,
    stub_upstream,
)

from vision_bench.gateway.application import create_app
from vision_bench.gateway.settings import Settings

DOCUMENT = create_app(Settings(_env_file=None, vllm_base_url="http://x/v1")).openapi()
schema = schemathesis.openapi.from_dict(DOCUMENT)

ERROR = {"error": {"message": "no", "type": "NotFoundError", "param": None, "code": 404}}


async def _reset(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def _silent(_request: StubRequest, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


MODELS = {"object": "list", "data": [{"id": "qwen", "object": "model"}]}

WAYS_OF_MODELS: Iterator[Behaviour] = itertools.cycle(
    [answers(MODELS), answers(ERROR, status=401), answers(ERROR, status=500), answers(b"[1"), _reset, _silent]
)

WAYS: list[Behaviour] = [
    answers(),
    answers(),
    streams([b'data: {"choices":[]}\n\n', b"data: [DONE]\n\n"]),
    answers(ERROR, status=404),
    answers(b"busy", status=529, content_type="text/plain"),
    answers({"detail": "Method Not Allowed"}, status=405),
    answers(b"<h1>500</h1>", status=500, content_type="text/html"),
    answers(b"", status=204),
    _reset,
]


async def upstream(request: StubRequest, writer: asyncio.StreamWriter) -> None:
    """The same answer to the same body, another to another."""
    if request.path.endswith("/models"):
        await next(WAYS_OF_MODELS)(request, writer)
    elif request.body == b'{"silent":true}':
        await _silent(request, writer)
    else:
        await WAYS[zlib.crc32(request.body) % len(WAYS)](request, writer)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A gateway in a thread of its own, for schemathesis calls and waits."""
    found: list[Rig] = []
    is_up, is_over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with stub_upstream(upstream) as stub, gateway(stub, vllm_timeout_seconds=0.5, max_batch_items=4) as one:
            found.append(one)
            is_up.set()
            await asyncio.to_thread(is_over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert is_up.wait(30)
    yield found[0]
    is_over.set()
    thread.join(30)
    state = found[0].app.state
    assert (state.admission.in_use, state.admission.waiting, state.buffer.held_bytes) == (0, 0, 0)


@schema.parametrize()
@settings(max_examples=30, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_document_is_true(case: Case, rig: Rig) -> None:
    """Whatever is asked, good or bad: a documented status with a documented type, an id, and no failure of ours."""
    answer = case.call(base_url=rig.url, timeout=20)
    case.validate_response(
        answer,
        checks=[
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_headers_conformance,
            checks.response_schema_conformance,
            checks.unsupported_method,
            checks.allow_header_conformance,
        ],
    )
    assert answer.headers["x-request-id"]
    assert b"internal_error" not in answer.content
    if answer.status_code >= 400 and case.path != "/readyz" and "json" in answer.headers["content-type"][0]:
        assert {"error"} == set(answer.json()) or answer.json() == {"detail": "Method Not Allowed"}


def test_every_operation_is_asked() -> None:
    """The document holds the routes that the manual names, and says what a silent vLLM comes to."""
    paths: dict[str, Any] = DOCUMENT["paths"]
    routes = {"/healthz", "/readyz", "/metrics", "/chat", "/chat/batch", "/v1/chat/completions", "/v1/models"}
    assert routes <= set(paths)
    for path in ("/chat", "/v1/chat/completions"):
        assert {"200", "408", "413", "502", "503", "504", "default"} <= set(paths[path]["post"]["responses"])
    assert list(paths["/chat/batch"]["post"]["responses"]["200"]["content"]) == ["application/x-ndjson"]
