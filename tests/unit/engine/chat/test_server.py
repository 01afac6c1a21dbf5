"""The application in-process: routes, keys, ids, and models that misbehave."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, Prepared, Token
from vision_bench.engine.chat.server import create_engine
from vision_bench.engine.chat.settings import EngineSettings
from vision_bench.errors import InvalidMedia

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}


class Parrot:
    """Says what it was told to say, or raises what it was told to raise."""

    name = "parrot"

    def __init__(self, tokens: tuple[str, ...] = ("pretty ", "bird"), *, prepare: object = None, after: object = None):
        self.tokens = tokens
        self.prepare_raises = prepare
        self.raises_after_first = after
        self.closed = 0

    async def prepare(self, request: ChatRequest) -> Prepared:
        if isinstance(self.prepare_raises, Exception):
            raise self.prepare_raises
        return Prepared(prompt_tokens=10)

    async def generate(self, request: ChatRequest, prepared: Prepared, *, sample: int = 0) -> AsyncIterator[Token]:
        try:
            for index, text in enumerate(self.tokens):
                if index == 1 and isinstance(self.raises_after_first, Exception):
                    raise self.raises_after_first
                yield Token(text, is_last=index == len(self.tokens) - 1)
        finally:
            self.closed += 1


async def ask(
    model: Parrot, body: dict[str, Any] = HELLO, headers: dict[str, str] | None = None, **settings: Any
) -> httpx.Response:
    app = create_engine(model, settings=EngineSettings(**settings))
    async with client_of(app) as client:
        return await client.post(CHAT, json=body, headers=headers)


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://engine")


async def test_an_answer_that_ends_by_itself_stops() -> None:
    """finish_reason stop, two tokens, stop_reason null."""
    answer = (await ask(Parrot())).json()
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "pretty bird"
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", None)
    assert answer["usage"]["completion_tokens"] == 2


async def test_max_tokens_cuts_and_closes_the_model() -> None:
    """finish_reason length after one token; the generator is closed at once."""
    model = Parrot()
    answer = (await ask(model, HELLO | {"max_tokens": 1})).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"] == "pretty "
    assert model.closed == 1


async def test_context_length_cuts_too() -> None:
    """Ten prompt tokens in a context of eleven leave room for one."""
    answer = (await ask(Parrot(), max_model_len=11)).json()
    assert answer["usage"] | {"prompt_tokens_details": 0} == {
        "prompt_tokens": 10,
        "total_tokens": 11,
        "completion_tokens": 1,
        "prompt_tokens_details": 0,
        "completion_tokens_details": None,
    }


async def test_prompt_that_leaves_no_room_is_refused() -> None:
    """Nothing could be answered."""
    answer = await ask(Parrot(), max_model_len=10)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "input_tokens"


async def test_grammar_ends_with_the_number_of_a_token() -> None:
    """vLLM's stop_reason is a number there: a client that expects a string breaks."""
    answer = (await ask(Parrot(), HELLO | {"structured_outputs": {"choice": ["pretty bird"]}})).json()
    assert isinstance(answer["choices"][0]["stop_reason"], int)


async def test_refusals_of_the_model_keep_status_and_type() -> None:
    """BadChatRequest and this project's own InvalidMedia both become error bodies."""
    refused = await ask(Parrot(prepare=BadChatRequest("Could not open video stream")))
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "Could not open video stream")
    media = await ask(Parrot(prepare=InvalidMedia("no picture")))
    assert (media.status_code, media.json()["error"]["type"]) == (400, "BadRequestError")


async def test_bug_in_a_model_is_a_500_without_a_request_id_header() -> None:
    """As vLLM's: InternalServerError, and the header is not there."""
    answer = await ask(Parrot(prepare=ZeroDivisionError("oh")), headers={"x-request-id": "abc"})
    assert answer.status_code == 500
    assert answer.json() == {"error": {"message": "oh", "type": "InternalServerError", "param": None, "code": 500}}
    assert "x-request-id" not in answer.headers


async def test_bug_in_the_middle_of_a_stream_is_an_event_before_done() -> None:
    """The status is long out."""
    answer = await ask(Parrot(after=ZeroDivisionError("oh")), HELLO | {"stream": True})
    *_, error, done = answer.text.strip().split("\n\n")
    assert answer.status_code == 200
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == 500
    assert done == "data: [DONE]"


async def test_refusal_before_the_first_token_is_plain_json_in_stream_mode_too() -> None:
    """Headers come after the media has been checked."""
    answer = await ask(Parrot(prepare=BadChatRequest("no")), HELLO | {"stream": True})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")


async def test_model_without_a_last_token_is_a_bug_that_is_told() -> None:
    """An answer is never silently taken for whole."""

    class Endless(Parrot):
        async def generate(self, request: ChatRequest, prepared: Prepared, *, sample: int = 0) -> AsyncIterator[Token]:
            yield Token("half")

    assert (await ask(Endless())).status_code == 500


async def test_request_id_of_the_header_is_in_both_places() -> None:
    """Echoed in the header, and behind chatcmpl- in the body; a body's request_id counts for the body alone."""
    answer = await ask(Parrot(), headers={"x-request-id": "abc"})
    assert (answer.headers["x-request-id"], answer.json()["id"]) == ("abc", "chatcmpl-abc")
    other = await ask(Parrot(), HELLO | {"request_id": "mine"})
    assert other.json()["id"] == "chatcmpl-mine"
    assert len(other.headers["x-request-id"]) == 32


async def test_lone_surrogate_in_a_model_name_is_still_an_answer() -> None:
    """The name comes back in the message, as an escape."""
    app = create_engine(Parrot())
    async with client_of(app) as client:
        content = b'{"model": "\\ud800", "messages": [{"role": "user", "content": "x"}]}'
        answer = await client.post(CHAT, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/models", 401), ("/health", 200), ("/metrics", 200), ("/version", 200)]
)
async def test_key_guards_v1_alone(path: str, status: int) -> None:
    """Health and metrics stay open, as in vLLM."""
    async with client_of(create_engine(Parrot(), settings=EngineSettings(api_key="k"))) as client:
        assert (await client.get(path)).status_code == status
        good = await client.get("/v1/models", headers={"authorization": "Bearer k"})
    assert good.status_code == 200


async def test_metrics_count_what_was_served() -> None:
    """One answer of two tokens and one unknown model."""
    async with client_of(create_engine(Parrot())) as client:
        await client.post(CHAT, json=HELLO)
        await client.post(CHAT, json=HELLO | {"model": "nope"})
        page = (await client.get("/metrics")).text
    assert 'vllm:generation_tokens_total{engine="0",model_name="qwen"} 2.0' in page
    assert 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="qwen"} 1.0' in page
    assert f'http_requests_total{{handler="{CHAT}",method="POST",status="4xx"}} 1.0' in page
    assert 'vllm:time_to_first_token_seconds_count{engine="0",model_name="qwen"} 1.0' in page


async def test_truth_lists_requests_with_their_outcomes_and_can_be_forgotten() -> None:
    """One NDJSON line each; DELETE empties the list."""
    async with client_of(create_engine(Parrot())) as client:
        await client.post(CHAT, json=HELLO, headers={"x-request-id": "a"})
        await client.post(CHAT, json=HELLO | {"model": "nope"}, headers={"x-request-id": "b"})
        records = [json.loads(line) for line in (await client.get("/truth")).text.splitlines()]
        await client.request("DELETE", "/truth")
        empty = (await client.get("/truth")).text
    assert [(record["request_id"], record["outcome"], record["tokens"]) for record in records] == [
        ("a", "ok", 2),
        ("b", "http_error", 0),
    ]
    assert records[0]["ttft_ms"] <= records[0]["e2e_ms"]
    assert empty == ""


async def test_model_list_tells_no_path() -> None:
    """`root` is the name again: there is no checkpoint to leak the place of."""
    async with client_of(create_engine(Parrot(), settings=EngineSettings(served_model_names=("a", "b")))) as client:
        cards = (await client.get("/v1/models")).json()["data"]
    assert [(card["id"], card["root"]) for card in cards] == [("a", "a"), ("b", "b")]
