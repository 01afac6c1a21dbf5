"""Streams over HTTP: the shapes of v1beta, leases, owners and limits, on a real gateway."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.integration.gateway_rig import gateway, until
from tests.integration.live_rig import jpeg, live_gateway, live_of, new_stream, put, stream_of
from tests.integration.stub_upstream import answers, stub_upstream

from vision_bench.errors import OperatorError
from vision_bench.gateway.live_server import LOOKUPS
from vision_bench.gateway.settings import Settings
from vision_bench.gateway.workers import serve_workers

NOWHERE = "http://127.0.0.1:9/v1"
ANN, BOB = {"Authorization": "Bearer ann"}, {"Authorization": "Bearer bob"}


@pytest.mark.parametrize("content", [b"", b"{}", b'{"source": null}'])
@pytest.mark.parametrize("prefix", ["/v1beta", "/v1"])
async def test_a_new_stream_says_where_to_publish(prefix: str, content: bytes) -> None:
    """201 with id, state, lease, and where to publish with which token; /v1/streams is the same under another name."""
    async with live_gateway(NOWHERE, live_ttl_seconds=60) as rig:
        answer = await rig.client.post(f"{prefix}/streams", content=content)
        body = answer.json()
        assert answer.status_code == 201
        assert set(body) == {"id", "state", "publish", "expires_at_ms", "ttl_seconds"}
        assert (body["state"], body["ttl_seconds"]) == ("active", 60)
        assert body["publish"]["type"] == "whip"
        assert body["publish"]["url"] == f"{rig.url}/live/whip/{body['id']}"
        assert body["publish"]["vision_bench"]["push_url"] == f"ws://127.0.0.1:{rig.port}/live/push/{body['id']}"
        assert live_of(rig).tokens.admits(body["publish"]["token"], "publish", body["id"])


async def test_a_stream_lives_by_its_lease_and_ends_once() -> None:
    """A keepalive gives a whole lease and a fresh token; a deletion ends the stream, and again; its numbers stay."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        path = f"/v1beta/streams/{stream['id']}"
        put(rig, stream["id"], count=3)
        alive = (await rig.client.post(f"{path}/keepalive")).json()
        assert set(alive) == {"id", "expires_at_ms", "ttl_seconds", "stream_time_ms", "publish"}
        assert alive["expires_at_ms"] >= stream["expires_at_ms"]
        assert alive["stream_time_ms"] == 200
        for _ in range(2):
            deleted = await rig.client.delete(path)
            assert (deleted.status_code, deleted.json()) == (200, {"id": stream["id"], "deleted": True})
        ended = (await rig.client.get(path)).json()
        assert (ended["state"], ended["end_reason"], ended["last_frame_index"]) == ("ended", "deleted", 2)
        late = await rig.client.post(f"{path}/keepalive")
        assert late.status_code == 404
        assert list(late.json()) == ["detail"]


async def test_another_keys_stream_does_not_exist() -> None:
    """Everything that one key asks about the stream of another is answered as for a stream that never was."""
    async with live_gateway(NOWHERE, gateway_api_keys="ann,bob") as rig:
        stream = await new_stream(rig, headers=ANN)
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/keepalive"),
            ("POST", "/viewer-token"),
        ):
            theirs = await rig.client.request(method, f"/v1beta/streams/{stream['id']}{path}", headers=BOB)
            unknown = await rig.client.request(method, f"/v1beta/streams/{'x' * 36}{path}", headers=BOB)
            assert theirs.status_code == unknown.status_code == 404
            assert theirs.json()["detail"].replace(stream["id"], "x" * 36) == unknown.json()["detail"]
        assert (await rig.client.get(f"/v1beta/streams/{stream['id']}", headers=ANN)).json()["state"] == "active"


async def test_keys_are_asked_for_and_a_publish_token_is_none() -> None:
    """Without a key 401 with a detail; with a stream's publish token too. The model list alone is open."""
    async with live_gateway(NOWHERE, gateway_api_keys="ann") as rig:
        token = (await new_stream(rig, headers=ANN))["publish"]["token"]
        for headers in ({}, {"Authorization": f"Bearer {token}"}):
            answer = await rig.client.post("/v1beta/streams", headers=headers)
            assert answer.status_code == 401
            assert isinstance(answer.json()["detail"], str)
        assert (await rig.client.get("/v1beta/models")).status_code == 200


async def test_every_answer_says_what_the_key_has_left() -> None:
    """Of two requests a minute: one left, none left, and 429 with Retry-After; OpenAI's routes say nothing of it."""
    async with live_gateway(NOWHERE, gateway_api_keys="ann", gateway_key_requests_per_minute=2) as rig:
        left = []
        for _ in range(3):
            answer = await rig.client.get("/v1beta/streams/none", headers=ANN)
            assert answer.headers["x-ratelimit-limit"] == "2"
            assert 0 < int(answer.headers["x-ratelimit-reset"]) <= 60
            left.append((answer.status_code, answer.headers["x-ratelimit-remaining"]))
        assert left == [(404, "1"), (404, "0"), (429, "0")]
        assert int(answer.headers["retry-after"]) >= 1
        assert isinstance(answer.json()["detail"], str)
        assert "x-ratelimit-limit" not in (await rig.client.get("/v1/models", headers=ANN)).headers


async def test_limits_of_a_key_and_of_the_server() -> None:
    """One stream more than a key may have is 429, than the server may have 503, both with a detail."""
    async with live_gateway(NOWHERE, gateway_api_keys="ann,bob", live_streams_per_key=2, live_streams=3) as rig:
        for _ in range(2):
            await new_stream(rig, headers=ANN)
        third = await rig.client.post("/v1beta/streams", headers=ANN)
        await new_stream(rig, headers=BOB)
        fourth = await rig.client.post("/v1beta/streams", headers=BOB)
        assert (third.status_code, fourth.status_code) == (429, 503)
        assert "delete one" in third.json()["detail"]


OTHER_BODIES = [
    (b"nonsense", ["body"]),
    (b"[]", ["body"]),
    (b'{"source": 1}', ["body", "source"]),
    (b'{"source": {"type": "ftp", "url": "x"}}', ["body", "source", "type"]),
    (b'{"source": {"type": "rtsp"}}', ["body", "source", "url"]),
]


async def test_a_body_of_another_shape_is_422() -> None:
    """error, message and details with the place of the fault, as v1beta tells validation errors."""
    async with live_gateway(NOWHERE) as rig:
        for body, place in OTHER_BODIES:
            answer = await rig.client.post("/v1beta/streams", content=body)
            told: dict[str, Any] = answer.json()
            assert (answer.status_code, told["error"]) == (422, "validation_error")
            assert set(told["details"][0]) == {"loc", "msg", "type"}
            assert told["details"][0]["loc"] == place
            assert told["message"].startswith(".".join(place[1:]) or "the body")  # clear without the details


async def test_a_viewer_sees_one_stream_and_nothing_else() -> None:
    """The token opens the JPEGs of its stream: the newest, or one by index; none of another stream, nor publishing."""
    async with live_gateway(NOWHERE) as rig:
        stream, other = await new_stream(rig), await new_stream(rig)
        put(rig, stream["id"], count=3)
        view = (await rig.client.post(f"/v1beta/streams/{stream['id']}/viewer-token")).json()["view"]
        assert (view["expires_in_seconds"], set(view)) == (300, {"url", "token", "expires_in_seconds"})
        shown = {"Authorization": f"Bearer {view['token']}"}
        newest = await rig.client.get(view["url"], headers=shown)
        assert (newest.headers["content-type"], newest.headers["x-frame-index"]) == ("image/jpeg", "2")
        assert newest.content == jpeg(14)
        first = await rig.client.get(f"{view['url']}?frame_index=0", headers=shown)
        assert first.content == jpeg(10)
        assert (await rig.client.get(f"/live/view/{other['id']}", headers=shown)).status_code == 401
        assert (await rig.client.get(view["url"])).status_code == 401
        publishing = {"Authorization": f"Bearer {stream['publish']['token']}"}
        assert (await rig.client.get(view["url"], headers=publishing)).status_code == 401
        await rig.client.delete(f"/v1beta/streams/{stream['id']}")
        assert (await rig.client.get(view["url"], headers=shown)).status_code == 404


async def test_a_viewer_may_wait_for_a_frame() -> None:
    """With wait_ms the frame is shown when it comes; 404 when the stream ends before."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        view = (await rig.client.post(f"/v1beta/streams/{stream['id']}/viewer-token")).json()["view"]
        shown = {"Authorization": f"Bearer {view['token']}"}
        url, ring = f"{view['url']}?wait_ms=60000&frame_index=", stream_of(rig, stream["id"]).ring
        looking = [asyncio.create_task(rig.client.get(f"{url}{index}", headers=shown)) for index in (0, 9)]
        await until(lambda: len(ring._waiting) == 2)
        put(rig, stream["id"], count=1)
        assert (await looking[0]).content == jpeg(10)
        await rig.client.delete(f"/v1beta/streams/{stream['id']}")
        assert (await looking[1]).status_code == 404


async def test_a_viewer_who_leaves_waits_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody looks for the frame any more, and the request counts as left by its caller, not as a failure of ours."""
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        view = (await rig.client.post(f"/v1beta/streams/{stream['id']}/viewer-token")).json()["view"]
        ring = stream_of(rig, stream["id"]).ring
        shown = {"Authorization": f"Bearer {view['token']}"}
        looking = asyncio.create_task(rig.client.get(f"{view['url']}?frame_index=9&wait_ms=60000", headers=shown))
        await until(lambda: ring._waiting)
        looking.cancel()
        await until(lambda: not ring._waiting, within_seconds=30)
        await until(lambda: rig.app.state.metrics.in_progress == 0)
        page = (await rig.client.get("/metrics")).text
    assert 'requests_total{outcome="client_left",route="/live/view/{stream_id}",status_class="4xx"} 1.0' in page
    assert "failed" not in caplog.text


async def test_who_leaves_within_a_small_body_is_no_failure_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """The stream is not made, and no error is logged."""
    async with live_gateway(NOWHERE) as rig:
        _, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write(b"POST /v1beta/streams HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
        metrics = rig.app.state.metrics
        await until(lambda: metrics.in_progress == 1)
        writer.transport.abort()
        await until(lambda: metrics.in_progress == 0)
        page = (await rig.client.get("/metrics")).text
        assert not list(live_of(rig).registry)
    assert 'requests_total{outcome="client_left",route="/v1beta/streams",status_class="4xx"} 1.0' in page
    assert "failed" not in caplog.text


async def test_openais_list_of_models_tells_the_status_too() -> None:
    """One field more of each card, in the list and alone; without live streams there is none."""
    cards = {"object": "list", "data": [{"id": "org/qwen", "object": "model", "created": 5, "owned_by": "me"}]}
    async with stub_upstream(answers(cards)) as upstream:
        async with gateway(upstream) as rig:
            (plain,) = (await rig.client.get("/v1/models")).json()["data"]
        async with live_gateway(upstream) as rig:
            assert (await rig.client.get("/v1/models")).json()["data"] == [{**plain, "status": "ready"}]
            assert (await rig.client.get("/v1/models/org/qwen")).json() == {**plain, "status": "ready"}
        assert "status" not in plain


async def test_slow_names_hold_up_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources whose names take long to be looked up wait for one another, and leave threads for everything else."""
    release, looking = threading.Event(), []

    def slow(*_: object) -> None:
        looking.append(1)
        release.wait(60)

    monkeypatch.setattr("vision_bench.gateway.live_server.check_source", slow)
    async with live_gateway(NOWHERE) as rig:
        body = {"source": {"type": "hls", "url": "http://slow.example/a.m3u8"}}
        creating = [asyncio.create_task(rig.client.post("/v1beta/streams", json=body)) for _ in range(40)]
        try:
            await until(lambda: looking)
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), timeout=30) == "free"
            assert len(looking) <= LOOKUPS
        finally:
            release.set()
            await asyncio.gather(*creating)


async def test_models_tell_their_state_and_kind() -> None:
    """ready while the upstream lists it, then unavailable; hosted or passthrough as configured, whatever its name."""
    cards = {"object": "list", "data": [{"id": "plain-name", "object": "model", "created": 5, "owned_by": "me"}]}
    async with stub_upstream(answers(cards)) as upstream, live_gateway(upstream) as rig:
        listed = (await rig.client.get("/v1beta/models")).json()
        assert listed == {
            "object": "list",
            "data": [
                {
                    "id": "plain-name",
                    "object": "model",
                    "created": 5,
                    "owned_by": "me",
                    "status": "ready",
                    "vision_bench": {"state": "ready", "kind": "hosted"},
                }
            ],
        }
        upstream.behaviour = answers({"object": "list", "data": []})
        rig.app.state.live_models._asked_ns = None
        gone = (await rig.client.get("/v1beta/models")).json()["data"][0]
        assert (gone["status"], gone["vision_bench"]["state"]) == ("unavailable", "unavailable")
    async with (
        stub_upstream(answers(cards)) as upstream,
        live_gateway(upstream, live_passthrough_urls=upstream.base_url) as rig,
    ):
        listed = (await rig.client.get("/v1beta/models")).json()
        assert listed["data"][0]["vision_bench"]["kind"] == "passthrough"


async def test_the_log_names_the_route_and_not_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    """Under which name it was asked, with the id left out."""
    caplog.set_level("INFO", logger="vision_bench.gateway.access")
    async with live_gateway(NOWHERE) as rig:
        stream = await new_stream(rig)
        await rig.client.get(f"/v1/streams/{stream['id']}")
    assert "route=/v1beta/streams status=201" in caplog.text
    assert "route=/v1/streams/{stream_id} status=200" in caplog.text
    assert stream["id"] not in caplog.text


async def test_without_the_setting_there_is_nothing() -> None:
    """The routes are not there, and say so in OpenAI's shape like every path that is none."""
    async with gateway(NOWHERE) as rig:
        answer = await rig.client.post("/v1beta/streams")
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")


def test_workers_are_refused() -> None:
    """Streams exist once: with more than one process the gateway does not start, and says why."""
    settings = Settings(_env_file=None, vllm_base_url=NOWHERE, live_enabled=True)
    with pytest.raises(OperatorError, match="LIVE_ENABLED=true needs one process, not 2"):
        serve_workers(lambda: None, settings, workers=2, host="127.0.0.1", port=0)  # type: ignore[arg-type,return-value]
