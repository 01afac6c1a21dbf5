"""The gateway's own API keys."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.gateway_in_process import NoTransport, calling

from vision_bench.gateway.application import create_app
from vision_bench.gateway.exchange import Refusal
from vision_bench.gateway.keys import Allowance, ApiKeys
from vision_bench.gateway.settings import Settings


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Bearer nope", 401),
        ("Bearer ", 401),
        ("Basic one", 401),
        ("one", 401),
        ("Bearer one", 400),
        ("bearer two", 400),
    ],
)
async def test_keys(authorization: str | None, status: int) -> None:
    """With GATEWAY_API_KEYS set, only a bearer of one of them gets as far as having its batch looked at."""
    headers = {"Authorization": authorization} if authorization else {}
    async with calling(gateway_api_keys="one,two") as client:
        answer = await client.post("/chat/batch", content=b"{}", headers=headers)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert answer.headers["x-request-id"]
        for open_path in ("/healthz", "/docs", "/redoc", "/openapi.json"):
            assert (await client.get(open_path)).status_code == 200
        assert (await client.get("/nope")).status_code == 401


async def test_open_paths_stay_open_under_a_prefix() -> None:
    """Behind a proxy that serves us under /gpu, health needs no key and /chat does."""
    settings = Settings(_env_file=None, vllm_base_url="http://x/v1", gateway_api_keys="one")
    app = create_app(settings, transport=NoTransport())
    prefixed = httpx.ASGITransport(app, root_path="/gpu")
    async with httpx.AsyncClient(transport=prefixed, base_url="http://gateway") as client:
        assert (await client.get("/gpu/healthz")).status_code == 200
        assert (await client.post("/gpu/chat", content=b"{}")).status_code == 401


@pytest.mark.parametrize("key", ["안녕", "암", "ключ", "a b", "ÿ", "k\u00a0", "x" * 5000, "Bearer x"])
async def test_a_key_is_its_utf8_bytes_without_blanks_around(key: str) -> None:
    """Letters of any script, some of whose bytes are blanks in Latin-1; blanks and tabs around it do not count."""
    async with calling(gateway_api_keys=f"first, {key} ") as client:
        for scheme in (b"Bearer ", b"bearer", b"BEARER \t "):
            headers = {b"authorization": scheme + (b"" if scheme.endswith(b" ") else b" ") + key.encode() + b" \t"}
            assert (await client.post("/chat/batch", content=b"{}", headers=headers)).status_code == 400, scheme
        for wrong in (key[:-1], key + "x", key.upper() + "_", "", "first" + key):
            headers = {b"authorization": b"Bearer " + wrong.encode()}
            assert (await client.post("/chat/batch", content=b"{}", headers=headers)).status_code == 401, wrong


def test_an_allowance_refills_evenly() -> None:
    """Three a minute: three at once, then one every 20 s, and after a silent hour three again, not 180."""
    now_seconds = 0.0
    allowance = Allowance(3, clock=lambda: int(now_seconds * 1e9))

    def taken() -> int:
        count = 0
        while True:
            try:
                allowance.take()
            except Refusal:
                return count
            count += 1

    assert taken() == 3
    now_seconds = 19.9
    assert taken() == 0
    now_seconds = 20
    assert taken() == 1
    now_seconds = 60
    assert taken() == 2
    now_seconds = 3600
    assert taken() == 3


def test_the_wait_is_told_in_whole_seconds() -> None:
    """Until the next request, or, for a batch of unknown size, until the allowance is whole; waiting that long is
    enough."""
    now_seconds = 100.0
    allowance = Allowance(7, clock=lambda: int(now_seconds * 1e9))
    for _ in range(7):
        allowance.take()
    now_seconds = 102.5
    with pytest.raises(Refusal) as caught:
        allowance.take()
    assert (caught.value.status, caught.value.type, caught.value.headers) == (429, "rate_limited", {"Retry-After": "7"})
    with pytest.raises(Refusal, match="a batch counts its items") as caught:
        allowance.take_for_batch()
    assert caught.value.headers == {"Retry-After": "58"}
    now_seconds += 7
    allowance.take()


async def test_each_key_has_its_own_limit() -> None:
    """One key used up is 429 before its body is read, with Retry-After; the other goes on; open paths and wrong keys
    use nothing up."""
    async with calling(gateway_api_keys="one,two", gateway_key_requests_per_minute=2) as client:

        async def status(key: str | None, path: str = "/chat/batch") -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return (await client.post(path, content=b"{}", headers=headers)).status_code

        assert [await status(key) for key in ("nope", None, "nope")] == [401] * 3
        assert [await status("one") for _ in range(3)] == [400, 400, 429]
        refused = await client.get("/nope", headers={"Authorization": "Bearer one"})
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        assert refused.json()["error"]["type"] == "rate_limited"
        assert "one" not in refused.text.replace("none", "")
        assert (await client.get("/healthz", headers={"Authorization": "Bearer one"})).status_code == 200
        assert [await status("two") for _ in range(3)] == [400, 400, 429]


async def test_a_websocket_needs_a_key_too() -> None:
    """No route takes one today; one that does later must not find the door open."""
    sent: list[Any] = []
    reached: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        reached.append(scope["type"])

    async def send(message: Any) -> None:
        sent.append(message)

    door = ApiKeys(app, ["k"])
    scope: dict[str, Any] = {"type": "websocket", "path": "/v1/realtime/video", "headers": []}
    await door(scope, None, send)  # type: ignore[arg-type]  # it reads nothing
    assert (reached, sent) == ([], [{"type": "websocket.close", "code": 1008}])
    await door(scope | {"headers": [(b"authorization", b"Bearer k")]}, None, send)  # type: ignore[arg-type]
    assert reached == ["websocket"]


async def test_a_key_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Not in a log line, page, metric or error, whether it was right, used up or nearly right."""
    caplog.set_level("DEBUG")
    told: list[str] = []
    settings = {"gateway_api_keys": "sk-secret-1", "gateway_key_requests_per_minute": 4, "vllm_api_key": "sk-secret-2"}
    async with calling(**settings) as client:
        for key in ("sk-secret-1", "sk-secret-3"):
            for path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/metrics", "/nope", "/v1/models"):
                answer = await client.get(path, headers={"Authorization": f"Bearer {key}"})
                told += [answer.text, str(answer.headers)]
        for _ in range(3):
            answer = await client.post("/chat/batch", content=b"{}", headers={"Authorization": "Bearer sk-secret-1"})
            told += [answer.text, str(answer.headers)]
        assert answer.status_code == 429
    assert len(caplog.messages) > 10
    assert "sk-secret" not in "".join(told) + caplog.text
