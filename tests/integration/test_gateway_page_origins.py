"""Browsers say whose page sends a request: what a stranger's page can do to a gateway without keys, over sockets."""

from __future__ import annotations

from typing import Any

import pytest
import websockets
from tests.integration.gateway_rig import BODY
from tests.integration.live_rig import jpeg, live_gateway, new_stream
from tests.integration.stub_upstream import stub_upstream

STRANGER = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
REBOUND = {"Origin": "http://evil.example:8001", "Host": "evil.example:8001"}
"""Its own name stands for 127.0.0.1 by now. Over http:// browsers send no Sec-Fetch-Site."""
PAGES = pytest.mark.parametrize("page", [STRANGER, REBOUND], ids=["cross-site", "rebound"])


@PAGES
async def test_a_strangers_page_drives_nothing(page: dict[str, str]) -> None:
    """Streams, questions, clips and tickets are refused with 403 and the remedy, in each API's shape; vLLM is not
    called, no stream is there, and the browser's simple requests, which ask nobody first, are no way round."""
    async with stub_upstream() as stub, live_gateway(stub, realtime_base_url="http://127.0.0.1:9/v1") as rig:
        stream = await new_stream(rig)
        own = f"/v1beta/streams/{stream['id']}"
        for method, path in (
            ("POST", "/v1beta/streams"),
            ("POST", "/v1/streams"),
            ("POST", f"{own}/keepalive"),
            ("POST", f"{own}/viewer-token"),
            ("DELETE", own),
            ("POST", "/v1beta/chat/completions"),
            ("POST", "/v1/chat/completions"),
            ("POST", "/chat"),
            ("POST", "/chat/batch"),
            ("POST", "/v1/realtime/ticket"),
        ):
            body: Any = {"items": [{"id": "a", "body": BODY}]} if path == "/chat/batch" else BODY
            answer = await rig.client.request(method, path, json=body, headers={**page, "Content-Type": "text/plain"})
            assert answer.status_code == 403, f"{method} {path}: {answer.text}"
            assert "GATEWAY_ORIGINS" in answer.text and "access-control-allow-origin" not in answer.headers
            assert ("detail" in answer.json()) == path.startswith(("/v1beta", "/v1/streams"))
        assert stub.requests == []
        assert (await rig.client.get(own)).json()["state"] == "active"


@PAGES
async def test_a_strangers_page_opens_no_websocket(page: dict[str, str]) -> None:
    """403 on both: a WebSocket is asked for by any page without asking first, and here each one needs a token."""
    async with stub_upstream() as stub, live_gateway(stub, realtime_base_url="http://127.0.0.1:9/v1") as rig:
        stream = await new_stream(rig)
        for path, protocol in (
            (f"/live/push/{stream['id']}", "vision-bench.push.v1"),
            ("/page/realtime", "vision-bench.realtime.v1"),
        ):
            headers = {name: value for name, value in page.items() if name != "Host"}
            with pytest.raises(websockets.InvalidStatus, match="403"):
                async with websockets.connect(
                    rig.url.replace("http", "ws", 1) + path,
                    subprotocols=[websockets.Subprotocol(protocol), websockets.Subprotocol("token.x")],
                    additional_headers=headers,
                    proxy=None,
                ):
                    pass


async def test_another_site_publishes_with_a_token_that_it_was_given() -> None:
    """What needs a token asks for no origin: an operator's own site may push frames from its visitors' browsers."""
    async with stub_upstream() as stub, live_gateway(stub) as rig:
        publish = (await new_stream(rig))["publish"]
        async with websockets.connect(
            publish["vision_bench"]["push_url"],
            subprotocols=[
                websockets.Subprotocol("vision-bench.push.v1"),
                websockets.Subprotocol(f"token.{publish['token']}"),
            ],
            additional_headers=STRANGER,
            proxy=None,
        ) as socket:
            await socket.send(jpeg())
            assert '"stored"' in str(await socket.recv())


@pytest.mark.parametrize(
    ("headers", "settings"),
    [
        ({}, {}),  # a program
        ({"Host": "gpu.example.com"}, {}),  # a program, or a proxy, by a name
        ({"Origin": "https://gpu.example.com", "Sec-Fetch-Site": "same-origin"}, {}),  # a TLS proxy
        (
            {"Origin": "http://gpu.example.com", "Host": "gpu.example.com"},
            {"gateway_origins": "http://gpu.example.com"},
        ),
        ({"Origin": "http://gpu.example.com"}, {"live_public_url": "http://gpu.example.com/video"}),
        ({**STRANGER, "Authorization": "Bearer key"}, {"gateway_api_keys": "key"}),  # a stranger's page has no key
    ],
)
async def test_proxies_programs_and_named_pages_are_served(headers: dict[str, str], settings: dict[str, Any]) -> None:
    """201 for whoever no browser calls a stranger's page, whatever proxy stands between, and with a key."""
    async with stub_upstream() as stub, live_gateway(stub, **settings) as rig:
        answer = await rig.client.post("/v1beta/streams", headers=headers)
        assert answer.status_code == 201, answer.text
