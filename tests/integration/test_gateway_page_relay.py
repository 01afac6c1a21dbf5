"""A browser's way to the server of generated video, over real sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import websockets
from tests.integration.gateway_rig import Rig, gateway, until
from tests.integration.realtime_rig import decoded, fast, play, realtime_engine, start_message
from tests.integration.stub_upstream import stub_upstream

from vision_bench.gateway.page_routes import PROTOCOL, REALTIME_PATH, SESSIONS


async def ticket(rig: Rig, **options: Any) -> str:
    """A fresh token."""
    answer = await rig.client.post("/v1/realtime/ticket", **options)
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


def connect(rig: Rig, token: str | None, **options: Any) -> websockets.connect:
    """As the page connects."""
    protocols = [PROTOCOL, *([] if token is None else [f"token.{token}"])]
    url = rig.url.replace("http", "ws", 1) + REALTIME_PATH
    return websockets.connect(url, subprotocols=protocols, max_size=None, proxy=None, **options)


async def test_a_session_passes_whole_and_the_servers_key_stays_here() -> None:
    """Every picture of a session arrives in order behind a server that wants a key, which no message shows."""
    async with (
        stub_upstream() as stub,
        realtime_engine(fast(api_key="server-key")) as engine,
        gateway(
            stub, realtime_base_url=f"{engine.url}/v1", realtime_api_key="server-key", gateway_api_keys="visitor"
        ) as rig,
    ):
        token = await ticket(rig, headers={"Authorization": "Bearer visitor"})
        async with connect(rig, token) as socket:
            assert socket.subprotocol == PROTOCOL
            seen = await play(socket, start_message(chunks=3))
        assert seen.types[-1] == "session.done"
        assert len(decoded(seen.media)) == 33
        assert "server-key" not in json.dumps(seen.messages)
        await until(lambda: not rig.app.state.realtime_sessions)


@pytest.mark.parametrize("token", [None, "", "realtime.1.00", "visitor", "publish.99999999999999999999.0"])
async def test_without_a_ticket_there_is_no_session(token: str | None) -> None:
    """403 before a byte goes to the server; an API key is no ticket."""
    async with (
        stub_upstream() as stub,
        gateway(stub, realtime_base_url="http://127.0.0.1:9/v1", gateway_api_keys="visitor") as rig,
    ):
        with pytest.raises(websockets.InvalidStatus, match="403"):
            async with connect(rig, token):
                pass


async def test_a_server_that_is_not_there_is_told_as_an_error_of_the_protocol() -> None:
    """A browser learns nothing of a refused connection, so it hears a sentence, without the server's address."""
    async with stub_upstream() as stub, gateway(stub, realtime_base_url="http://127.0.0.1:9/v1") as rig:
        async with connect(rig, await ticket(rig)) as socket:
            seen = await play(socket)
        assert (seen.types, seen.close_code) == (["error"], 1011)
        assert "cannot be reached" in seen.errors[0] and "127.0.0.1" not in seen.errors[0]


async def test_no_server_no_ticket() -> None:
    """404 with the setting's name."""
    async with stub_upstream() as stub, gateway(stub) as rig:
        answer = await rig.client.post("/v1/realtime/ticket")
        assert answer.status_code == 404 and "REALTIME_BASE_URL" in answer.text


async def test_who_leaves_frees_the_server_and_sessions_are_bounded() -> None:
    """One over the limit is told to come later; when a browser is gone, so is its connection to the server."""
    async with (
        stub_upstream() as stub,
        realtime_engine(fast(ttfc_ms=60_000)) as engine,
        gateway(stub, realtime_base_url=f"{engine.url}/v1") as rig,
    ):
        sessions = rig.app.state.realtime_sessions
        held = [await connect(rig, await ticket(rig)) for _ in range(SESSIONS)]
        await until(lambda: len(sessions) == SESSIONS)
        async with connect(rig, await ticket(rig)) as socket:
            assert (await play(socket)).close_code == 1013
        held[0].transport.abort()
        await until(lambda: len(sessions) == SESSIONS - 1)
        await asyncio.gather(*(socket.close() for socket in held[1:]))
        await until(lambda: not sessions)
