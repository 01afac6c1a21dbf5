"""What the reference server for generated video refuses, in its words, and that it serves the next session after."""

from __future__ import annotations

import base64
import io
import json
import struct
from typing import Any

import pytest
import websockets
from PIL import Image
from tests.integration.realtime_rig import (
    HEIGHT,
    WIDTH,
    Json,
    RealtimeRig,
    fast,
    picture_url,
    play,
    realtime_engine,
    start_message,
)

from vision_bench.engine.realtime.protocol import Deadlines
from vision_bench.wire.realtime.start import MAX_START_CHARACTERS

HOLD: list[list[str]] = [[], [], []]


def huge_picture() -> Json:
    """Few bytes, more pixels than are taken."""
    buffer = io.BytesIO()
    Image.new("1", (8192, 4096)).save(buffer, "PNG")
    return {"image_url": f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"}


BEFORE_START: dict[str, tuple[Json | str | bytes, str]] = {
    "not JSON": ("{", "Invalid JSON in session.start"),
    "no object": ("[1]", "session.start must be a JSON object"),
    "another type": ({"type": "session.ping"}, "Expected session.start, got: session.ping"),
    "no prompt": (start_message(prompt=None), "Invalid session.start: prompt: Field required"),
    "another model": (
        start_message(model="zz"),
        "Model mismatch: request specifies 'zz' but server is running 'lingbot-world'.",
    ),
    "another format": (start_message(format="mp4"), "Invalid session.start format: expected 'm4s'."),
    "no frames": (
        start_message(num_frames=0),
        "Invalid session.start: num_frames: Input should be greater than or equal to 1",
    ),
    "too long": (
        start_message(prompt="x" * MAX_START_CHARACTERS),
        "session.start message too large",
    ),
    "binary": (b"\x00", "'text'"),
}

AFTER_START: dict[str, tuple[Json, str]] = {
    "no picture": (
        start_message(image_reference=None),
        "an image_reference is required: the rollout starts from a picture",
    ),
    "two pictures": (
        start_message(image_reference=[{"image_url": picture_url()}] * 2),
        "exactly one image_reference is supported, got 2",
    ),
    "a file": (
        start_message(image_reference={"file_id": "f"}),
        "400: image_reference.file_id is not supported; send image_url",
    ),
    "a URL": (
        start_message(image_reference={"image_url": "https://example.com/a.png?key=1"}),
        "400: this engine fetches no pictures, image_reference names example.com; send a data: URL",
    ),
    "not base64": (
        start_message(image_reference={"image_url": "data:image/png;base64,%%%"}),
        "400: image_reference.image_url holds what is not base64",
    ),
    "no base64": (
        start_message(image_reference={"image_url": "data:image/png,abc"}),
        "400: image_reference.image_url must be data:image/...;base64,<bytes>",
    ),
    "no image": (
        start_message(image_reference={"image_url": "data:image/png;base64,Zm9v"}),
        "image_reference holds no picture that can be decoded",
    ),
    "too many pixels": (
        start_message(image_reference=huge_picture()),
        "image has 8192x4096 pixels; at most 16777216 are taken",
    ),
    "blank prompt": (start_message(prompt="  "), "prompt must contain non-whitespace text"),
    "no size": (
        start_message(width=None),
        f"width and height are missing; this deployment serves {WIDTH}x{HEIGHT}",
    ),
    "another size": (
        start_message(width=128),
        f"this deployment serves {WIDTH}x{HEIGHT}, got 128x{HEIGHT}",
    ),
    "an odd size": (
        start_message(width=250),
        f"width and height must be multiples of 16, got 250x{HEIGHT}",
    ),
    "half a chunk": (start_message(num_frames=20), "num_frames must be 9 + 12 k, got 20"),
    "five steps": (start_message(num_inference_steps=5), "num_inference_steps must be 4, got 5"),
    "no flow": (
        start_message(extra_params={"flow_shift": 0}),
        "flow_shift must be positive and finite, got 0",
    ),
    "a short script": (
        start_message(chunks=3, script=[HOLD, HOLD]),
        "camera_action_script has 2 chunks, the request generates 3",
    ),
    "an unknown key": (
        start_message(chunks=1, script=[[["q"], [], []]]),
        "Unknown camera action 'q'; the keys are a d i j k l s w",
    ),
    "a short chunk": (
        start_message(chunks=1, script=[[[], []]]),
        "camera_action_script[0] has 2 action lists; one a latent frame makes 3.",
    ),
    "a path": (
        start_message(extra_params={"action_path": "x"}),
        "action_path needs a trusted root, which this deployment has not",
    ),
    "an impossible rate": (start_message(fps=5000), "fps must be at most 1000, got 5000"),
}


async def assert_serves(rig: RealtimeRig) -> None:
    """The server plays a session to its end."""
    async with rig.connect() as socket:
        seen = await play(socket, start_message(chunks=1))
    assert seen.types[-1] == "session.done"


async def test_what_is_wrong_with_the_form_ends_the_session_before_it_began() -> None:
    """One error in the protocol's words, no video.start, no close frame; the next session is served."""
    async with realtime_engine() as rig:
        for name, (message, words) in BEFORE_START.items():
            async with rig.connect() as socket:
                seen = await play(socket, message)
            assert (seen.types, seen.errors, seen.close_code) == (["error"], [words], 1006), name
        await assert_serves(rig)


async def test_what_is_wrong_with_the_content_ends_the_session_after_it_began() -> None:
    """video.start, one error, no close frame; the next session is served."""
    async with realtime_engine() as rig:
        for name, (message, words) in AFTER_START.items():
            async with rig.connect() as socket:
                seen = await play(socket, message)
            assert (seen.types, seen.errors, seen.close_code) == (["video.start", "error"], [words], 1006), name
        await assert_serves(rig)


async def test_silence_is_refused() -> None:
    """Who says nothing until the deadline is told so."""
    async with realtime_engine(fast(deadlines=Deadlines(start_seconds=0.5))) as rig:
        async with rig.connect() as socket:
            message = json.loads(await socket.recv())
            await socket.wait_closed()
        assert (message, socket.close_code) == (
            {"type": "error", "message": "Timeout waiting for session.start"},
            1006,
        )
        await assert_serves(rig)


async def test_a_message_beyond_the_transport_is_too_big() -> None:
    """A message that announces more than 16 MiB: close code 1009, before the rest of it has come."""
    head = b"\x81\xff" + struct.pack("!Q", 16 * 1024 * 1024 + 1) + b"mask"  # text, masked, that many bytes
    async with realtime_engine() as rig:
        async with rig.connect() as socket:
            socket.transport.write(head)
            await socket.wait_closed()
        assert socket.close_code == 1009
        await assert_serves(rig)


async def test_a_model_without_video_says_so_and_closes() -> None:
    """One error and a normal close."""
    async with realtime_engine(fast(can_stream=False)) as rig, rig.connect() as socket:
        message = json.loads(await socket.recv())
        await socket.wait_closed()
    assert (message["type"], socket.close_code) == ("error", 1000)


@pytest.mark.parametrize("sent", [None, "Bearer wrong", "Bearer schlüssel"])
async def test_without_the_key_nobody_comes_in(sent: str | None) -> None:
    """401 with a small JSON body, for the handshake as for /v1/models; with the key the session plays."""
    headers = {} if sent is None else {"Authorization": sent.encode().decode("latin-1")}
    async with realtime_engine(fast(api_key="key")) as rig:
        with pytest.raises(websockets.InvalidStatus) as refused:
            async with rig.connect(additional_headers=headers):
                pass
        answer = refused.value.response
        assert (answer.status_code, json.loads(answer.body)) == (401, {"error": "Unauthorized"})
        assert (await rig.client.get("/v1/models")).status_code == 401
        async with rig.connect(additional_headers={"Authorization": "Bearer key"}) as socket:
            assert (await play(socket, start_message(chunks=1))).types[-1] == "session.done"


def interaction(**inner: Any) -> Json:
    """A message of that content."""
    return {"type": "session.interaction", "interaction": inner}


CONTROL: list[tuple[Json | str, Json]] = [
    (start_message(), {"message": "Unknown message type: session.start"}),
    ({"type": "session.end"}, {"message": "Unknown message type: session.end"}),
    ("{x", {"message": "Invalid JSON message"}),
    ("[]", {"message": "WebSocket messages must be JSON objects"}),
    ('"' + "x" * (128 * 1024) + '"', {"message": "control message too large"}),
    ({"type": "session.interaction"}, {"message": "session.interaction requires an interaction object"}),
    (interaction(event_id=""), {"message": "session.interaction event_id must be a non-empty string"}),
    (interaction(), {"message": "session.interaction requires event object"}),
    (interaction(event={"prompt": " "}), {"message": "session.interaction requires a non-empty event.prompt"}),
    (
        interaction(event={"multi_modal_data": {}}),
        {"message": "session.interaction event.multi_modal_data must be a non-empty object"},
    ),
    (
        interaction(event={"multi_modal_data": {"camera": 3}}),
        {"message": "session.interaction event.multi_modal_data.camera must be an object"},
    ),
    (
        interaction(event={"prompt": "q", "negative_prompt": "n"}),
        {"message": "session.interaction negative_prompt is not supported in this release"},
    ),
    (
        interaction(event={"prompt": "q"}, transition_chunks=2.5),
        {"message": "session.interaction transition_chunks must be an integer"},
    ),
    (
        interaction(event={"prompt": "q"}, transition_chunks=-1),
        {"message": "session.interaction transition_chunks must be >= 0"},
    ),
]


async def test_a_refused_control_message_costs_nothing() -> None:
    """Each is answered by its error, in the order sent; a ping behind them is answered, and the session ends well."""

    def react(message: Json) -> list[Json | str | bytes] | None:
        is_first = message["type"] == "video.chunk_metadata" and message["transport_chunk_index"] == 0
        return [*(given for given, _ in CONTROL), {"type": "session.ping"}] if is_first else None

    async with realtime_engine(fast(chunk_ms=300)) as rig, rig.connect() as socket:
        seen = await play(socket, start_message(chunks=4), react=react)
    replies = [message for message in seen.messages if message["type"] in ("error", "session.pong")]
    assert replies == [*({"type": "error", **answer} for _, answer in CONTROL), {"type": "session.pong"}]
    assert (seen.messages[-1]["type"], seen.messages[-1]["stopped"]) == ("session.done", False)
