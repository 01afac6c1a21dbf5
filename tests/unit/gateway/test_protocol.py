"""The connection's bounds, over a transport that only remembers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.jumping_clock import run
from tests.remembering_transport import Remembering
from uvicorn.config import Config
from uvicorn.server import ServerState

from vision_bench.gateway.protocol import LIMITS_KEY, ConnectionLimits, GuardedProtocol
from vision_bench.gateway.settings import Settings


async def hello(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def connected(transport: Remembering, **limits: Any) -> GuardedProtocol:
    """A protocol on ``transport`` with an application that greets."""
    config = Config(hello, log_config=None, lifespan="off", ws="none")
    protocol = GuardedProtocol(config, ServerState(), {LIMITS_KEY: ConnectionLimits(**limits)})
    transport.protocol = protocol
    protocol.connection_made(transport)
    return protocol


def test_the_limits_are_the_settings() -> None:
    """GATEWAY_MAX_HEADER_BYTES and GATEWAY_IDLE_SECONDS reach the connection."""
    settings = Settings(
        _env_file=None, vllm_base_url="http://x/v1", gateway_max_header_bytes=2000, gateway_idle_seconds=9
    )
    assert ConnectionLimits.of(settings) == ConnectionLimits(head_bytes=2000, idle_seconds=9)


@pytest.mark.parametrize(
    ("head", "is_refused"),
    [
        (b"GET /" + b"x" * 977 + b" HTTP/1.1\r\nA: b\r\n\r\n", False),
        (b"GET /" + b"x" * 1000 + b" HTTP/1.1\r\nA: b\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 994 + b"\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 995 + b"\r\n\r\n", True),
    ],
)
def test_the_limit_of_a_head_is_exact(head: bytes, is_refused: bool) -> None:
    """Target and header lines together, 1,000 bytes here; one more is 431."""

    async def main() -> None:
        transport = Remembering()
        connected(transport, head_bytes=1000).data_received(head)
        await asyncio.sleep(0.01)
        assert transport.written.startswith(b"HTTP/1.1 431 " if is_refused else b"HTTP/1.1 200 ")
        if is_refused:
            assert json.loads(transport.written.partition(b"\r\n\r\n")[2])["error"]["type"] == "headers_too_large"

    run(main())


@pytest.mark.parametrize("is_stuck", [False, True])
def test_an_idle_connection_ends_in_time(is_stuck: bool) -> None:
    """75 s after its answer; cut instead of closed when the answer was not taken, for closing would wait for that."""

    async def main() -> None:
        transport = Remembering(is_stuck=is_stuck)
        protocol = connected(transport)
        await asyncio.sleep(74)
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(74)
        assert transport.written.endswith(b"hi")
        assert transport.ended is None
        await asyncio.sleep(2)
        assert transport.ended == ("aborted" if is_stuck else "closed")

    run(main())


def test_a_head_in_drips_has_its_own_time() -> None:
    """A letter every 10 s after 70 idle seconds: 75 s from the first letter, not from the last."""

    async def main() -> None:
        transport = Remembering()
        protocol = connected(transport)
        protocol.data_received(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(70)
        for letter in b"POST / HTTP/1.1":
            if transport.ended:
                break
            protocol.data_received(bytes([letter]))
            await asyncio.sleep(10)
        assert transport.ended == "closed"
        assert asyncio.get_running_loop().time() == pytest.approx(70 + 80, abs=1)

    run(main())


def test_an_answer_that_moves_is_left_alone() -> None:
    """Over the high-water mark: a caller that takes a byte now and then is waited for, one that takes none is cut."""

    async def main() -> None:
        transport = Remembering(is_stuck=True)
        protocol = connected(transport)
        protocol.data_received(b"GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n")
        transport.written = b"x" * 100_000
        protocol.pause_writing()
        for _ in range(5):
            await asyncio.sleep(70)
            transport.written = transport.written[1:]
            assert transport.ended is None
        await asyncio.sleep(160)
        assert transport.ended == "aborted"

    run(main())


def test_every_request_of_a_connection_learns_that_the_caller_left() -> None:
    """The one that runs and those that wait behind it, which are never begun."""

    async def main() -> None:
        seen: list[str] = []

        async def waits(scope: Any, receive: Any, _send: Any) -> None:
            seen.append(scope["path"])
            await receive()  # the body, which is empty
            seen.append((await receive())["type"])

        protocol = connected(Remembering())
        protocol.app = waits
        protocol.data_received(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n")
        await asyncio.sleep(1)
        protocol.connection_lost(None)
        await asyncio.sleep(1)
        assert seen == ["/1", "http.disconnect"]

    run(main())
