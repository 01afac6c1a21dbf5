"""A stream that something happens to while it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import httpx
from tests.integration.gateway_rig import Rig
from tests.vllm.bodies import Body

from vision_bench.wire.sse import EventParser


async def streamed_until(rig: Rig, happens: Callable[[], object], body: Body) -> list[str]:
    """Start a stream, call ``happens`` once text has come, and read to the end: the data of every event.

    The end may be a broken transfer: that is how the gateway ends a stream on which vLLM has fallen silent.
    """
    parser, found, has_happened = EventParser(), [], False
    async with rig.client.stream("POST", "/chat", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        with contextlib.suppress(httpx.RemoteProtocolError):
            async for chunk in answer.aiter_bytes():
                found += [event.data for event in parser.feed(chunk)]
                if len(found) > 3 and not has_happened:
                    has_happened = True
                    happens()
    assert has_happened
    return found
