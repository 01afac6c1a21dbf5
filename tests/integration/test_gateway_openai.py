"""The official OpenAI client against the gateway: nothing but its base_url is changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from tests.integration.engine_rig import declared
from tests.integration.gateway_rig import Rig, gateway
from tests.integration.stub_upstream import CHAT_ANSWER, StubRequest, answers, response, streams, stub_upstream

from vision_bench.engine.chat.settings import EngineSettings

HELLO: Any = [{"role": "user", "content": "Hello"}]
LISTED = {"object": "list", "data": [{"id": "org/qwen", "object": "model", "root": "/srv/models/qwen", "parent": None}]}


@asynccontextmanager
async def client_of(rig: Rig, **options: Any) -> AsyncIterator[AsyncOpenAI]:
    """The client as a user makes it; one try, so that a failure is seen as it is."""
    given = {"api_key": "unused", "max_retries": 0, **options}
    http = httpx.AsyncClient(verify=False, trust_env=False)  # noqa: S501 (no TLS here; loading certificates is slow)
    async with AsyncOpenAI(base_url=f"{rig.url}/v1", http_client=http, **given) as client:
        yield client


@asynccontextmanager
async def engine_client(
    engine: EngineSettings | None = None, **settings: Any
) -> AsyncIterator[tuple[AsyncOpenAI, Rig]]:
    """The client, the gateway and an engine behind it."""
    async with declared(engine) as upstream, gateway(f"{upstream.url}/v1", **settings) as rig, client_of(rig) as client:
        yield client, rig


async def test_a_plain_answer() -> None:
    """Text, finish reason and usage arrive as the client's own types; the gateway's headers are there."""
    async with engine_client() as (client, _):
        raw = await client.chat.completions.with_raw_response.create(
            model="qwen", messages=HELLO, max_tokens=5, extra_headers={"X-Request-Id": "mine"}
        )
        answer = raw.parse()
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5
    assert raw.headers["x-request-id"] == "mine"
    assert "upstream;dur=" in raw.headers["server-timing"]


async def test_a_streamed_answer_with_usage() -> None:
    """Every token in a chunk of its own, the usage in the last one, and a clean end."""
    async with engine_client() as (client, _):
        stream = await client.chat.completions.create(
            model="qwen", messages=HELLO, max_tokens=6, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(said) == 6
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 6


async def test_the_models_without_their_paths() -> None:
    """The list and one of its entries; an id may hold a slash; ``root`` is no path."""
    async with stub_upstream(answers(LISTED)) as stub, gateway(stub) as rig, client_of(rig) as client:
        listed = [model async for model in client.models.list()]
        one = await client.models.retrieve("org/qwen")
        with pytest.raises(openai.NotFoundError, match="'nope' does not exist; there are: org/qwen"):
            await client.models.retrieve("nope")
    assert [model.id for model in listed] == [one.id] == ["org/qwen"]
    assert "/srv" not in one.model_dump_json()
    assert [request.path for request in stub.requests] == ["/v1/models"] * 3


async def test_the_engines_models() -> None:
    """Each served name, with its length."""
    async with engine_client(EngineSettings(served_model_names=("qwen", "q"), max_model_len=4096)) as (client, _):
        listed = [model async for model in client.models.list()]
    assert [model.id for model in listed] == ["qwen", "q"]
    assert {getattr(model, "max_model_len") for model in listed} == {4096}  # noqa: B009 (not in the client's type)


async def test_vllms_refusals_are_the_clients_exceptions() -> None:
    """400 and 404 carry vLLM's words."""
    async with engine_client() as (client, _):
        with pytest.raises(openai.BadRequestError, match="temperature must be non-negative"):
            await client.chat.completions.create(model="qwen", messages=HELLO, temperature=-1)
        with pytest.raises(openai.NotFoundError, match="The model `nope` does not exist"):
            await client.chat.completions.create(model="nope", messages=HELLO)
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="qwen", messages=HELLO, temperature=-1, stream=True)


async def test_the_gateways_keys_are_the_clients_api_key() -> None:
    """One of GATEWAY_API_KEYS gets through and is not passed on; another is an AuthenticationError, on both routes."""
    async with (
        stub_upstream(answers(LISTED)) as stub,
        gateway(stub, gateway_api_keys="good,better") as rig,
        client_of(rig, api_key="better") as client,
        client_of(rig, api_key="bad") as stranger,
    ):
        assert [model.id async for model in client.models.list()] == ["org/qwen"]
        stub.behaviour = answers()
        assert (await client.chat.completions.create(model="qwen", messages=HELLO)).choices
        for call in (stranger.models.list(), stranger.chat.completions.create(model="qwen", messages=HELLO)):
            with pytest.raises(openai.AuthenticationError, match="GATEWAY_API_KEYS"):
                await call
    assert len(stub.requests) == 2
    assert not any("authorization" in request.headers for request in stub.requests)


async def test_vllms_own_key() -> None:
    """VLLM_API_KEY opens the list too; without it the client's own key goes on, and vLLM's 401 comes back."""
    engine = EngineSettings(api_key="theirs")
    async with engine_client(engine, vllm_api_key="theirs") as (client, _):
        assert [model.id async for model in client.models.list()] == ["qwen"]
    async with engine_client(engine) as (client, rig):
        for call in (client.models.list(), client.chat.completions.create(model="qwen", messages=HELLO)):
            with pytest.raises(openai.AuthenticationError):
                await call
        async with client_of(rig, api_key="theirs") as known:
            assert [model.id async for model in known.models.list()] == ["qwen"]
            assert (await known.chat.completions.create(model="qwen", messages=HELLO)).choices


@pytest.mark.parametrize(
    ("status", "expected"),
    [(413, openai.APIStatusError), (422, openai.UnprocessableEntityError), (429, openai.RateLimitError)]
    + [(status, openai.InternalServerError) for status in (500, 502, 503, 504)],
)
async def test_every_error_status_of_vllm_is_an_exception(status: int, expected: type[openai.APIStatusError]) -> None:
    """Of its kind, with vLLM's message, from the chat and from the list."""
    body = {"error": {"message": "vLLM says no", "type": "X", "param": None, "code": status}}
    async with stub_upstream(answers(body, status=status)) as stub, gateway(stub) as rig, client_of(rig) as client:
        for call in (client.models.list(), client.chat.completions.create(model="qwen", messages=HELLO)):
            with pytest.raises(expected, match="vLLM says no") as caught:
                await call
            assert caught.value.status_code == status
            assert caught.value.request_id


async def test_a_body_over_the_limit_is_a_413() -> None:
    """The gateway's own refusal, with the setting's name."""
    async with (
        stub_upstream() as stub,
        gateway(stub, gateway_max_body_bytes=1000) as rig,
        client_of(rig) as client,
    ):
        with pytest.raises(openai.APIStatusError, match="GATEWAY_MAX_BODY_BYTES") as caught:
            await client.chat.completions.create(model="qwen", messages=[{"role": "user", "content": "x" * 2000}])
    assert caught.value.status_code == 413
    assert not stub.requests


async def test_nobody_there_is_a_502() -> None:
    """From the chat and from the list."""
    async with stub_upstream() as gone:
        pass
    async with gateway(gone) as rig, client_of(rig) as client:
        for call in (client.models.list(), client.chat.completions.create(model="qwen", messages=HELLO)):
            with pytest.raises(openai.InternalServerError, match="cannot be reached") as caught:
                await call
            assert caught.value.status_code == 502


async def test_a_model_list_under_no_status_of_http_is_a_502() -> None:
    """No answer of ours could carry it."""
    async with stub_upstream(answers({"object": "list", "data": []}, status=600)) as stub, gateway(stub) as rig:
        for path in ("/v1/models", "/v1/models/qwen"):
            answer = await rig.client.get(path)
            assert (answer.status_code, answer.json()["error"]["type"]) == (502, "upstream_error")
            assert "status 600" in answer.json()["error"]["message"]


async def test_a_silent_vllm_is_a_504() -> None:
    """From the chat and from the list, after VLLM_TIMEOUT_SECONDS."""
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub, vllm_timeout_seconds=0.3) as rig,
        client_of(rig) as client,
    ):
        for call in (client.models.list(), client.chat.completions.create(model="qwen", messages=HELLO)):
            with pytest.raises(openai.InternalServerError) as caught:
                await call
            assert caught.value.status_code == 504


async def test_no_permit_in_time_is_a_503() -> None:
    """With a Retry-After that the client's own retries heed."""
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub, vllm_concurrency=1, vllm_acquire_timeout_seconds=0.2) as rig,
        client_of(rig) as client,
    ):
        first = asyncio.create_task(client.chat.completions.create(model="qwen", messages=HELLO))
        while not stub.running:
            await asyncio.sleep(0.01)
        with pytest.raises(openai.InternalServerError, match="no permit") as caught:
            await client.chat.completions.create(model="qwen", messages=HELLO)
        assert (caught.value.status_code, caught.value.response.headers["retry-after"]) == (503, "1")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


@pytest.mark.parametrize("then", ["reset", "silent"])
async def test_a_stream_that_breaks_raises(then: str) -> None:
    """Two chunks, then a reset or silence: an exception with the reason, and never a clean end."""
    event = b'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    seen = []
    async with (
        stub_upstream(streams([event, event], then=then)) as stub,
        gateway(stub, vllm_timeout_seconds=0.5) as rig,
        client_of(rig) as client,
    ):
        stream = await client.chat.completions.create(model="qwen", messages=HELLO, stream=True)
        with pytest.raises(openai.APIError, match=r"broke off|took longer"):
            async for chunk in stream:
                seen.append(chunk)  # noqa: PERF401 (the loop is to raise)
    assert len(seen) == 2


async def test_the_clients_own_timeout_frees_the_permit() -> None:
    """An APITimeoutError at the client; vLLM's call is closed."""
    async with (
        stub_upstream(answers(delay_seconds=30)) as stub,
        gateway(stub) as rig,
        client_of(rig, timeout=0.3) as client,
    ):
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(model="qwen", messages=HELLO)
        async with asyncio.timeout(5):
            while stub.open_connections or rig.admission.in_use:
                await asyncio.sleep(0.01)
    assert stub.abandoned == 1


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"[]", b'{"data": null}', b"", b"[" * 100_000, b'{"data": [' + b" " * 1024 * 1024],
    ids=["html", "array", "no data", "empty", "deep", "too long"],
)
async def test_what_is_no_model_list_is_a_502(answer: bytes) -> None:
    """One sentence with the address; nothing of it is shown as a model."""
    async with stub_upstream(answers(answer)) as stub, gateway(stub) as rig:
        refused = await rig.client.get("/v1/models")
    assert refused.status_code == 502
    assert refused.json()["error"]["type"] == "upstream_error"
    assert f"127.0.0.1:{stub.port}/v1" in refused.json()["error"]["message"]


async def test_it_is_the_same_exchange_as_chat() -> None:
    """Bytes pass as they are, the permit is one of the same, and the query of an Azure client does not matter."""
    body = b'{ "model":"qwen",  "odd":1e2 }'

    async def behave(_request: StubRequest, writer: asyncio.StreamWriter) -> None:
        assert rig.admission.in_use == 1
        writer.write(response(json.dumps(CHAT_ANSWER).encode(), extra=["Retry-After: 7"]))

    async with stub_upstream(behave) as stub, gateway(stub) as rig:
        answer = await rig.client.post("/v1/chat/completions?api-version=1", content=body)
        assert (await rig.client.get("/v1/chat/completions")).status_code == 405
    assert answer.json() == CHAT_ANSWER
    assert answer.headers["retry-after"] == "7"
    assert "queue;dur=" in answer.headers["server-timing"]
    assert [(request.path, request.body) for request in stub.requests] == [("/v1/chat/completions", body)]
