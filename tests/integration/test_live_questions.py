"""Questions about streams: which frames reach vLLM, what the answer tells of them, and what is answered without."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest
from tests.integration.gateway_rig import BODY, Rig, until
from tests.integration.live_rig import jpeg, live_gateway, live_of, new_stream, put, stream_of
from tests.integration.stub_upstream import CHAT_ANSWER, StubUpstream, answers, streams, stub_upstream

from vision_bench.live.jpeg import jpeg_size
from vision_bench.live.receipt import read_receipt

BETA, OPENAI = "/v1beta/chat/completions", "/v1/chat/completions"


def about(url: str, *, kind: str = "image_url", **fields: Any) -> dict[str, Any]:
    """A question about one reference."""
    parts = [{"type": kind, kind: {"url": url}}, {"type": "text", "text": "what now?"}]
    return {"model": "qwen", "messages": [{"role": "user", "content": parts}], **fields}


def sent_url(upstream: StubUpstream, kind: str = "image_url") -> str:
    """What stood in the reference's place when the last body came to vLLM."""
    url: str = upstream.requests[-1].json()["messages"][0]["content"][0][kind]["url"]
    return url


def pictures(url: str, kind: str) -> list[bytes]:
    """The JPEGs of a data: URL."""
    head = f"data:{kind}/jpeg;base64,"
    assert url.startswith(head)
    return [base64.b64decode(text, validate=True) for text in url.removeprefix(head).split(",")]


@pytest.mark.parametrize("path", [BETA, OPENAI])
@pytest.mark.parametrize("scheme", ["stream", "ovs"])
async def test_a_frame_stands_where_it_was_named(path: str, scheme: str) -> None:
    """vLLM gets the newest frame's very bytes; the answer is vLLM's, with which frame that was and where time went."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=5)
        answer = await rig.client.post(path, json=about(f"{scheme}://streams/{stream['id']}?frame_index=-1"))
        assert pictures(sent_url(upstream), "image") == [jpeg(18)]
        told = answer.json()
        assert {key: told[key] for key in CHAT_ANSWER} == CHAT_ANSWER
        receipt = told["vision_bench"]
        assert [(frame["stream_id"], frame["frame_index"], frame["timestamp_ms"]) for frame in receipt["frames"]] == [
            (stream["id"], 4, 400)
        ]
        assert receipt["frames"][0]["age_ms"] >= 0
        assert receipt["payload_bytes"] == len(jpeg(18))
        assert told["overshoot"] == {"cache": receipt["cache"]}
        known = {stage["stage"] for stage in receipt["stages"] if stage["ms"] is not None}
        assert known >= {"selection", "encode", "queue", "first_token"}
        assert read_receipt(receipt).frames[0].frame_index == 4


async def test_a_segment_is_one_video() -> None:
    """Its frames in order, at most max_fps of them a second, as the JPEG frames that vLLM takes for a video."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=20)
        url = f"stream://streams/{stream['id']}?start_offset_ms=-1000&max_fps=5"
        told = (await rig.client.post(BETA, json=about(url, kind="video_url"))).json()
        indices = [frame["frame_index"] for frame in told["vision_bench"]["frames"]]
        assert pictures(sent_url(upstream, "video_url"), "video") == [jpeg(10 + 2 * index) for index in indices]
        assert 5 <= len(indices) <= 6
        assert indices == sorted(indices)
        seen = told["vision_bench"]["newest"]
        assert seen == [{"stream_id": stream["id"], "frame_index": 19, "timestamp_ms": 1900}]


async def test_a_receipt_names_the_newest_frame_of_each_stream_once() -> None:
    """However old what was asked for is: two references to one stream and one to another make two entries."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        first, second = await new_stream(rig), await new_stream(rig)
        put(rig, first["id"], count=7)
        put(rig, second["id"], count=3)
        asked = [(first["id"], 0), (second["id"], 1), (first["id"], 2)]
        urls = [f"stream://streams/{id_}?frame_index={index}" for id_, index in asked]
        body = about(urls[0])
        body["messages"][0]["content"] += [{"type": "image_url", "image_url": {"url": url}} for url in urls[1:]]
        receipt = (await rig.client.post(BETA, json=body)).json()["vision_bench"]
        assert [(frame["stream_id"], frame["frame_index"]) for frame in receipt["frames"]] == asked
        newest = [(seen["stream_id"], seen["frame_index"]) for seen in receipt["newest"]]
        assert newest == [(first["id"], 6), (second["id"], 2)]


async def test_frames_of_two_sizes_become_one_video() -> None:
    """A camera that changed its size within the segment: all frames have the newest one's."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=2)
        put(rig, stream["id"], count=2, size=(32, 24))
        url = f"stream://streams/{stream['id']}?start_frame_index=0&max_fps=100"
        answer = await rig.client.post(BETA, json=about(url, kind="video_url"))
        assert answer.status_code == 200
        assert [jpeg_size(data) for data in pictures(sent_url(upstream, "video_url"), "video")] == [(32, 24)] * 4


@pytest.mark.parametrize("query", ["frame_index=-1", "timestamp_ms=5000", "start_offset_ms=-1000"])
async def test_a_stream_that_ends_while_a_question_waits_is_not_found(query: str) -> None:
    """404 at once, as for a question that comes later: no frame of it will come, and none was ever in a segment."""
    part = "video_url" if query.startswith("start") else "image_url"
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        body = about(f"stream://streams/{stream['id']}?{query}&wait_ms=60000", kind=part)
        asking = asyncio.create_task(rig.client.post(BETA, json=body))
        ring = stream_of(rig, stream["id"]).ring
        await until(lambda: ring._waiting)
        await rig.client.delete(f"/v1beta/streams/{stream['id']}")
        answer = await asyncio.wait_for(asking, timeout=30)
        assert (answer.status_code, answer.json()["detail"]["error"]["code"]) == (404, "stream_not_found")
        assert upstream.requests == []


async def test_one_reference_that_fails_leaves_no_other_waiting() -> None:
    """A question about a frame that has gone and one that is to come is refused at once, and waits for nothing more."""
    async with stub_upstream() as upstream, live_gateway(upstream, live_ring_bytes=64 * 1024) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=80)  # more than the ring holds
        url = f"stream://streams/{stream['id']}?frame_index="
        parts = [{"type": "image_url", "image_url": {"url": f"{url}{index}&wait_ms=60000"}} for index in (999, 0, 998)]
        body = {"model": "qwen", "messages": [{"role": "user", "content": parts}]}
        answer = await asyncio.wait_for(rig.client.post(BETA, json=body), timeout=30)
        assert (answer.status_code, answer.json()["detail"]["error"]["code"]) == (410, "frame_evicted")
        await until(lambda: not stream_of(rig, stream["id"]).ring._waiting)


async def test_frames_are_chosen_when_all_have_come() -> None:
    """Beside a frame that is waited for, the newest is the newest of that moment, not of the question's beginning."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=1)
        url = f"stream://streams/{stream['id']}?frame_index="
        parts = [{"type": "image_url", "image_url": {"url": url + index}} for index in ("-1", "3&wait_ms=60000")]
        body = {"model": "qwen", "messages": [{"role": "user", "content": parts}]}
        asking = asyncio.create_task(rig.client.post(BETA, json=body))
        await until(lambda: stream_of(rig, stream["id"]).ring._waiting)
        put(rig, stream["id"], count=5)
        answer = await asyncio.wait_for(asking, timeout=30)
        assert [frame["frame_index"] for frame in answer.json()["vision_bench"]["frames"]] == [5, 3]


async def test_questions_that_fill_the_buffer_do_not_wait_for_one_another() -> None:
    """Each body has its room, and together they have all of it; the pictures find theirs elsewhere."""
    size = 1_000_000
    async with (
        stub_upstream() as upstream,
        live_gateway(upstream, gateway_max_body_bytes=size, gateway_buffer_bytes=size) as rig,
    ):
        stream = await new_stream(rig)
        url = f"stream://streams/{stream['id']}?frame_index=0&wait_ms=60000"
        body = about(url, padding="x" * (size * 2 // 5))
        asking = [asyncio.create_task(rig.client.post(BETA, json=body)) for _ in range(2)]
        ring = stream_of(rig, stream["id"]).ring
        await until(lambda: len(ring._waiting) == 2)
        picture = jpeg(9) + b"\x00" * (size // 4)
        assert ring.append(picture, width=64, height=48, at_ns=1, received_ns=live_of(rig).clock()) is not None
        answers_ = await asyncio.wait_for(asyncio.gather(*asking), timeout=60)
        assert [answer.status_code for answer in answers_] == [200, 200]
        assert live_of(rig).pictures.held_bytes == 0


async def test_metrics_show_questions_whose_pictures_wait_for_room() -> None:
    """Of two that fill more than all of it one runs and one waits, and no body does; behind both nothing is held."""
    size = 1_000_000
    async with (
        stub_upstream(answers(delay_seconds=60)) as upstream,
        live_gateway(upstream, gateway_max_body_bytes=size, gateway_buffer_bytes=size) as rig,
    ):
        stream = await new_stream(rig)
        ring, room = stream_of(rig, stream["id"]).ring, live_of(rig).pictures
        picture = jpeg(9) + b"\x00" * (size * 9 // 20)
        assert ring.append(picture, width=64, height=48, at_ns=1, received_ns=live_of(rig).clock()) is not None
        body = about(f"stream://streams/{stream['id']}?frame_index=0")
        asking = [asyncio.create_task(rig.client.post(BETA, json=body)) for _ in range(2)]
        await until(lambda: room.waiting == 1)
        held, page = room.held_bytes, (await rig.client.get("/metrics")).text
        for call in asking:
            call.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await until(lambda: room.waiting == room.held_bytes == 0, within_seconds=30)
    shown = {line.partition(" ")[0]: line.partition(" ")[2] for line in page.splitlines()}
    told = {name: float(shown[f"vision_bench_gateway_{name}"]) for name in _ROOM}
    assert told == dict(zip(_ROOM, (held, 1, 0), strict=True))
    assert held > size // 2


_ROOM = ("picture_bytes", "questions_waiting_for_room", "requests_waiting_for_room")


async def test_a_damaged_frame_is_told_and_not_a_failure_of_ours() -> None:
    """400 with the frame, in each API's shape; the frames behind it can be asked about."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        ring, now_ns = stream_of(rig, stream["id"]).ring, live_of(rig).clock()
        damaged = jpeg(50, width=96, height=96)[:250] + b"\xff\xd9"
        for at, (picture, side) in enumerate(((damaged, 96), (jpeg(60, width=64, height=64), 64))):
            ring.append(picture, width=side, height=side, at_ns=now_ns + at * 10**9, received_ns=now_ns)
        url = f"stream://streams/{stream['id']}?max_fps=1000&start_frame_index="
        told = await rig.client.post(BETA, json=about(f"{url}0", kind="video_url"))
        assert (told.status_code, told.json()["detail"]["error"]["code"]) == (400, "segment_invalid")
        plain = await rig.client.post(OPENAI, json=about(f"{url}0", kind="video_url"))
        assert (plain.status_code, plain.json()["error"]["type"]) == (400, "segment_invalid")
        assert (await rig.client.post(BETA, json=about(f"{url}1", kind="video_url"))).status_code == 200


def _events(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]


async def test_a_stream_of_tokens_ends_with_the_receipt() -> None:
    """Events pass in order; the last one before [DONE], and no other, holds the receipt with first and last token."""
    deltas = [
        {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}},
    ]
    chunks = [f"data: {json.dumps(delta)}\n\n".encode() for delta in deltas] + [b"data: [DONE]\n\n"]
    async with stub_upstream(streams(chunks, gap_seconds=0.02)) as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=1)
        body = about(f"stream://streams/{stream['id']}?frame_index=-1", stream=True, thread_id="t")
        answer = await rig.client.post(BETA, json=body)
        events = _events(answer.text)
        assert answer.text.endswith("data: [DONE]\n\n")
        assert [{key: event[key] for key in delta} for event, delta in zip(events, deltas, strict=True)] == deltas
        assert [list(event) for event in events if "vision_bench" in event] == [
            ["choices", "usage", "vision_bench", "overshoot"]
        ]
        receipt = events[-1]["vision_bench"]
        assert receipt["cache"] == {"thread_id": "t", "cache_hit": True, "cached_input_tokens": 4}
        stages = {stage["stage"]: stage["ms"] for stage in receipt["stages"]}
        assert stages["final_token"] > 0


async def test_tokens_are_not_held_back() -> None:
    """The first token is there while vLLM still works on the second."""
    first = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": null}]}\n\n'
    async with stub_upstream(streams([first], then="silent")) as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=1)
        body = about(f"stream://streams/{stream['id']}?frame_index=-1", stream=True)
        async with rig.client.stream("POST", BETA, json=body) as answer, asyncio.timeout(10):
            async for piece in answer.aiter_bytes():
                assert b'"a"' in piece
                break
        await until(lambda: rig.admission.in_use == 0)


async def test_a_thread_stays_on_one_upstream_and_is_not_sent() -> None:
    """Of two, each thread has its own, whatever else runs; when it fails, the thread goes to the other one."""
    models = {"object": "list", "data": [{"id": "qwen"}]}

    async def behave(request: Any, writer: Any) -> None:
        await answers(models if request.path.endswith("/models") else None)(request, writer)

    async with stub_upstream(behave) as one, stub_upstream(behave) as two:  # noqa: SIM117  # the third needs them
        async with live_gateway(f"{one.base_url},{two.base_url}") as rig:

            def asked(upstream: StubUpstream) -> int:
                return sum(request.path.endswith("/chat/completions") for request in upstream.requests)

            places = set()
            for thread in range(12):
                before = asked(one), asked(two)
                for _ in range(3):
                    body = {**BODY, "thread_id": f"thread-{thread}"}
                    assert (await rig.client.post(BETA, json=body)).status_code == 200
                after = asked(one) - before[0], asked(two) - before[1]
                assert sorted(after) == [0, 3]
                places.add(after)
            assert len(places) == 2
            assert not any(b"thread" in request.body for upstream in (one, two) for request in upstream.requests)
            one.stop()
            for thread in range(12):
                answer = await rig.client.post(BETA, json={**BODY, "thread_id": f"thread-{thread}"})
                assert answer.status_code == 200


async def test_a_model_that_one_upstream_has_is_asked_there() -> None:
    """A second, passthrough upstream has other models; each question goes where its model is, on both chat routes."""

    def serving(name: str) -> Any:
        async def behave(request: Any, writer: Any) -> None:
            listed = {"object": "list", "data": [{"id": name}]}
            await answers(listed if request.path.endswith("/models") else {"model": name, "choices": []})(
                request, writer
            )

        return behave

    async with stub_upstream(serving("ours")) as one, stub_upstream(serving("theirs")) as two:
        urls = f"{one.base_url},{two.base_url}"
        async with live_gateway(urls, live_passthrough_urls=two.base_url) as rig:
            for path in (BETA, OPENAI):
                for name in ("ours", "theirs", "ours", "theirs"):
                    assert (await rig.client.post(path, json={**BODY, "model": name})).json()["model"] == name


@pytest.mark.parametrize("body", [json.dumps(BODY, indent=3).encode(), b"nonsense", b'{"messages": "stream:\\u0020x"}'])
async def test_other_bodies_pass_byte_for_byte(body: bytes) -> None:
    """On OpenAI's route a body without references goes to vLLM as it is, and the answer comes back as it is."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        answer = await rig.client.post(OPENAI, content=body)
        assert upstream.requests[-1].body == body
        assert answer.json() == CHAT_ANSWER


FAILURES = [
    # (reference, kind, status, code)
    ("stream://streams/ID?frame_index=0", "image_url", 410, "frame_evicted"),
    ("stream://streams/ID?frame_index=99", "image_url", 409, "frame_not_yet_produced"),
    ("stream://streams/ID?frame_index=1&frame_index=2", "image_url", 400, "query_param_invalid"),
    ("stream://streams/ID?what=1", "image_url", 400, "query_param_invalid"),
    ("stream://streams/ID?start_frame_index=9&end_frame_index=9", "video_url", 400, "segment_invalid"),
    ("stream://streams/ID?start_timestamp_ms=99999999", "video_url", 404, "segment_empty"),
    ("stream://streams/ID?start_frame_index=5&max_fps=1000", "video_url", 400, "segment_invalid"),
    ("stream://elsewhere/ID?frame_index=1", "image_url", 400, "stream_url_invalid"),
    ("stream://streams/unknown?frame_index=-1", "image_url", 404, "stream_not_found"),
    ("stream://streams/THEIRS?frame_index=-1", "image_url", 404, "stream_not_found"),
]


async def _with_frames(rig: Rig, key: dict[str, str]) -> str:
    stream = (await new_stream(rig, headers=key))["id"]
    live_of(rig).registry.by_id(stream).ring.limit_bytes = 20 * (1024 + len(jpeg()) + 40)
    put(rig, stream, count=40)
    assert stream_of(rig, stream).ring.first_index > 5
    return str(stream)


async def test_what_was_chosen_where_the_public_description_contradicts_itself() -> None:
    """Status and code of each failure, on both routes, in each one's shape; vLLM is never asked. A segment reaches
    back over what is gone, and clamp takes the oldest."""
    ann, bob = {"Authorization": "Bearer ann"}, {"Authorization": "Bearer bob"}
    settings: dict[str, Any] = {"gateway_api_keys": "ann,bob", "live_max_segment_frames": 12}
    async with stub_upstream() as upstream, live_gateway(upstream, **settings) as rig:
        ours, theirs = await _with_frames(rig, ann), await _with_frames(rig, bob)
        for reference, kind, status, code in FAILURES:
            body = about(reference.replace("ID", ours).replace("THEIRS", theirs), kind=kind)
            beta = await rig.client.post(BETA, json=body, headers=ann)
            assert (beta.status_code, beta.json()["detail"]["error"]["code"]) == (status, code), reference
            assert set(beta.json()["detail"]["error"]) == {"message", "type", "code"}
            openai = await rig.client.post(OPENAI, json=body, headers=ann)
            error = openai.json()["error"]
            assert (openai.status_code, error["type"], error["code"]) == (status, code, status), reference
        assert upstream.requests == []
        clamped = about(f"stream://streams/{ours}?frame_index=0&clamp=true")
        oldest = (await rig.client.post(BETA, json=clamped, headers=ann)).json()["vision_bench"]["frames"][0]
        assert oldest["frame_index"] == stream_of(rig, ours).ring.first_index
        cut = about(f"stream://streams/{ours}?start_frame_index=0&end_offset_ms=-1500", kind="video_url")
        assert (await rig.client.post(BETA, json=cut, headers=ann)).status_code == 200
        edge = about(f"stream://streams/{ours}?start_offset_ms=-500&end_offset_ms=0&max_fps=10", kind="video_url")
        frames = (await rig.client.post(BETA, json=edge, headers=ann)).json()["vision_bench"]["frames"]
        assert frames[-1]["frame_index"] == 39


async def test_a_frame_to_come_is_waited_for() -> None:
    """wait_ms holds the question until the frame is there; no permit is held meanwhile."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        asking = asyncio.create_task(
            rig.client.post(BETA, json=about(f"stream://streams/{stream['id']}?frame_index=0&wait_ms=60000"))
        )
        ring = stream_of(rig, stream["id"]).ring
        await until(lambda: ring._waiting)
        assert rig.admission.in_use == 0
        put(rig, stream["id"], count=1)
        assert (await asking).json()["vision_bench"]["frames"][0]["frame_index"] == 0


async def test_who_leaves_while_waiting_is_forgotten() -> None:
    """The wait ends with the connection."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        stream = await new_stream(rig)
        ring = stream_of(rig, stream["id"]).ring
        body = about(f"stream://streams/{stream['id']}?frame_index=0&wait_ms=60000")
        with pytest.raises(httpx.ReadTimeout):
            await rig.client.post(BETA, json=body, timeout=httpx.Timeout(30, read=0.5))
        await until(lambda: not ring._waiting)
        assert upstream.requests == []


async def test_a_frame_passes_the_media_rules() -> None:
    """With no remote URL allowed, a reference is none: what vLLM gets is the frame itself. Others are still refused."""
    async with stub_upstream() as upstream, live_gateway(upstream, gateway_media_domains="none") as rig:
        stream = await new_stream(rig)
        put(rig, stream["id"], count=1)
        body = about(f"stream://streams/{stream['id']}?frame_index=-1")
        assert (await rig.client.post(BETA, json=body)).status_code == 200
        body["messages"][0]["content"].append({"type": "image_url", "image_url": {"url": "http://x.example/a.jpg"}})
        refused = await rig.client.post(BETA, json=body)
        assert (refused.status_code, refused.json()["detail"]["error"]["code"]) == (400, "media_not_allowed")


OTHER_BODIES: list[tuple[bytes, list[Any]]] = [
    (b"nonsense", ["body"]),
    (b"[]", ["body"]),
    (b"{}", ["body", "model"]),
    (b'{"model": "m", "messages": []}', ["body", "messages"]),
    (b'{"model": "m", "messages": [{"role": "cat"}]}', ["body", "messages", 0]),
    (b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "thread_id": 7}', ["body", "thread_id"]),
    (b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": "yes"}', ["body", "stream"]),
]


async def test_a_body_of_another_shape_is_422() -> None:
    """error, message and details with the place; vLLM is not asked."""
    async with stub_upstream() as upstream, live_gateway(upstream) as rig:
        for body, place in OTHER_BODIES:
            answer = await rig.client.post(BETA, content=body)
            assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
            assert answer.json()["details"][0]["loc"] == place
        assert upstream.requests == []


@pytest.mark.parametrize(
    ("status", "told", "code", "type"),
    [
        (
            404,
            {"error": {"message": "no such model", "type": "NotFoundError", "code": 404}},
            "model_unavailable",
            "provider_error",
        ),
        (
            400,
            {"error": {"message": "too long", "type": "BadRequestError", "code": 400}},
            "upstream_http_400",
            "upstream_error",
        ),
        (500, b"oops", "upstream_http_500", "upstream_error"),
    ],
)
async def test_vllms_failures_have_the_shape_of_the_api(status: int, told: Any, code: str, type: str) -> None:
    """Its status and message pass; the code says that it was the upstream's."""
    async with stub_upstream(answers(told, status=status)) as upstream, live_gateway(upstream) as rig:
        answer = await rig.client.post(BETA, json=BODY)
        error = answer.json()["detail"]["error"]
        assert (answer.status_code, error["code"], error["type"]) == (status, code, type)
        assert error["upstream"]["status"] == status


async def test_an_upstream_that_is_not_there() -> None:
    """502 with upstream_request_failed."""
    async with live_gateway("http://127.0.0.1:9/v1") as rig:
        answer = await rig.client.post(BETA, json=BODY)
        assert (answer.status_code, answer.json()["detail"]["error"]["code"]) == (502, "upstream_request_failed")
