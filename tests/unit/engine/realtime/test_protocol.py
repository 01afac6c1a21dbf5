"""engine.realtime.protocol: every message and error of the protocol, and the oddities that a client must survive."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vision_bench.engine.realtime.protocol import (
    Abort,
    Action,
    Chunk,
    Close,
    Forward,
    Generate,
    Phase,
    Send,
    SendMedia,
    Session,
    Step,
    next_deadline_ns,
    on_binary,
    on_chunk,
    on_client_gone,
    on_clock,
    on_generation_ended,
    on_generation_failed,
    on_registered,
    on_send_failed,
    on_text,
    refuse_model,
)
from vision_bench.wire.realtime.events import VideoStart

SECOND = 1_000_000_000
FRESH = "0123456789abcdef" * 2
GOLDEN = Path(__file__).parents[3] / "golden" / "realtime_vectors.json"
PROTOCOL: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))["protocol"]
GIVEN = {"type": "session.start", "model": "m", "prompt": "p", "width": 64, "height": 48, "num_frames": 33, "fps": 16}


def connected() -> Session:
    """Accepted at second 0, nothing sent yet."""
    return Session("m", "video_stream-1", 0)


def text(session: Session, message: str | dict[str, Any], at_s: float = 1.0) -> Step:
    """A text frame from the client."""
    raw = message if isinstance(message, str) else json.dumps(message)
    return on_text(session, raw, now_ns=round(at_s * SECOND), fresh_id=FRESH)


def streaming(**changes: Any) -> Session:
    """Started at second 1 and known to the engine."""
    return on_registered(text(connected(), {**GIVEN, **changes}).session).session


def interaction(event_id: str | None = "a", **event: Any) -> dict[str, Any]:
    """A prompt under that id."""
    body: dict[str, Any] = {"event": event or {"prompt": "x"}}
    return {"type": "session.interaction", "interaction": body if event_id is None else {**body, "event_id": event_id}}


def sent(actions: tuple[Action, ...]) -> list[dict[str, Any]]:
    """The text frames among the actions, as messages."""
    return [action.event.to_message() for action in actions if isinstance(action, Send)]


def run_through(session: Session, frames: tuple[int, ...]) -> list[Action]:
    """The engine gives those chunks and ends with a trailer."""
    actions: list[Action] = []
    for index, count in enumerate(frames):
        session, done = on_chunk(session, Chunk(index, count, b"media"), now_ns=2 * SECOND)
        actions += done
    return [*actions, *on_generation_ended(session, b"trailer").actions]


def client_message(vector: dict[str, Any]) -> str | None:
    """The vector's client frame as text; None for those that are no text."""
    client = vector["client"]
    if isinstance(client, dict):
        return json.dumps(client)
    if client.startswith("<text longer than 128*1024"):
        return "x" * (128 * 1024 + 1)
    return None if client.startswith("<") else str(client)


REPLIED = [
    vector
    for vector in PROTOCOL
    if client_message(vector) is not None and all(isinstance(one, dict) for one in vector["server"])
]


@pytest.mark.parametrize("vector", REPLIED, ids=lambda vector: str(vector["id"]))
def test_a_recorded_message_gets_the_recorded_answer(vector: dict[str, Any]) -> None:
    """Type, words, ids and whether the session lives on, as recorded from the original."""
    message = client_message(vector)
    assert message is not None
    before = connected() if vector["state"] == "connected" else streaming()
    after, actions = text(before, message)
    (expected,) = vector["server"]
    (answer,) = sent(actions)
    assert answer["type"] == expected["type"]
    for word in expected.get("message_keywords", ()):
        assert word.lower() in answer["message"].lower()
    if expected.get("event_id") == "<32 hex chars>":
        assert answer["event_id"] == FRESH
    elif "event_id" in expected:
        assert answer["event_id"] == expected["event_id"]
    assert not expected.get("has_request_id") or answer["request_id"] == "video_stream-1"
    is_over = vector["terminal"]
    assert (after.phase is Phase.OVER) == is_over
    assert (Close() in actions) == is_over
    assert not any(isinstance(action, Generate) for action in actions)


def test_the_recorded_messages_are_there() -> None:
    """Twenty-one of them have one answer in JSON; the others are told in words and tested below."""
    assert len(REPLIED) == len(PROTOCOL) - len(
        {"start-ok", "start-one-chunk", "start-reject-8", "start-reject-10", "start-transport-limit"}
        | {"start-empty-prompt-accepted-by-ws", "control-binary", "control-stall"}
    )


def test_a_start_is_answered_before_anything_is_generated() -> None:
    """video.start echoes the request, then the engine gets it; the stall clock starts."""
    after, actions = text(connected(), GIVEN, at_s=4)
    start = actions[0]
    assert isinstance(start, Send)
    assert isinstance(start.event, VideoStart)
    assert (start.event.request_id, start.event.format) == ("video_stream-1", "m4s")
    assert start.event.config["fps"] == 16.0
    assert isinstance(actions[1], Generate)
    assert next_deadline_ns(after) == 64 * SECOND


def test_a_blank_prompt_is_accepted_here() -> None:
    """The engine refuses it late."""
    _, actions = text(connected(), {**GIVEN, "prompt": ""})
    assert [message["type"] for message in sent(actions)] == ["video.start"]


def test_a_rollout_is_chunks_a_trailer_and_done() -> None:
    """As recorded: frames 9 12 12 0, places 0 1 2 null, numbers 0 1 2 3, four frames in all, no close frame."""
    (vector,) = (one for one in PROTOCOL if one["id"] == "start-ok")
    actions = run_through(streaming(), (9, 12, 12))
    media = [action.metadata for action in actions if isinstance(action, SendMedia)]
    assert [one.num_frames for one in media] == vector["frames_announced"]
    assert [one.generation_chunk_index for one in media] == vector["generation_chunk_index"]
    assert [one.transport_chunk_index for one in media] == vector["transport_chunk_index"]
    assert [one.kind for one in media] == ["media", "media", "media", "trailer"]
    assert [one.byte_length for one in media] == [5, 5, 5, 7]
    done = {"type": "session.done", "request_id": "video_stream-1", "chunks": 4, "stopped": False}
    assert sent(tuple(actions)) == [done]
    assert actions[-1] == Close(None)


def test_the_only_chunk_of_a_rollout_has_no_place() -> None:
    """Its generation_chunk_index is null."""
    media = [action for action in run_through(streaming(num_frames=9), (9,)) if isinstance(action, SendMedia)]
    assert [one.metadata.generation_chunk_index for one in media] == [None, None]


def test_a_chunk_carries_its_events() -> None:
    """In the metadata, by their three lists."""
    chunk = Chunk(2, 12, b"x", started_event_ids=["a"], active_event_ids=["a", "b"], completed_event_ids=["b"])
    (action,) = on_chunk(streaming(), chunk, now_ns=0).actions
    assert isinstance(action, SendMedia)
    assert action.metadata.started_event_ids == ("a",)
    assert action.metadata.active_event_ids == ("a", "b")
    assert action.metadata.completed_event_ids == ("b",)


def test_a_chunk_without_bytes_is_not_announced_but_is_a_sign_of_life() -> None:
    """Places in the rollout skip it, numbers of frames do not, and the stall clock starts again."""
    session, actions = on_chunk(streaming(), Chunk(0, 9, b""), now_ns=30 * SECOND)
    assert actions == ()
    assert next_deadline_ns(session) == 90 * SECOND
    (action,) = on_chunk(session, Chunk(1, 12, b"x"), now_ns=31 * SECOND).actions
    assert isinstance(action, SendMedia)
    assert (action.metadata.generation_chunk_index, action.metadata.transport_chunk_index) == (1, 0)


def test_a_rollout_without_a_trailer_ends_all_the_same() -> None:
    """An encoder that held nothing back has nothing left."""
    ended, actions = on_generation_ended(streaming())
    assert [message["type"] for message in sent(actions)] == ["session.done"]
    assert ended.phase is Phase.OVER


def test_silence_before_the_start_is_an_error_after_ten_seconds() -> None:
    """Not at ten, past it; no video.start, no close frame."""
    session = connected()
    assert next_deadline_ns(session) == 10 * SECOND
    assert on_clock(session, now_ns=10 * SECOND) == Step(session)
    after, actions = on_clock(session, now_ns=10 * SECOND + 1)
    assert sent(actions) == [{"type": "error", "message": "Timeout waiting for session.start"}]
    assert (after.phase, actions[-1]) == (Phase.OVER, Close(None))


def test_a_stall_is_an_error_and_then_done() -> None:
    """Both come: the error when the minute is over, done (stopped) when the engine has let go."""
    session, actions = on_clock(streaming(), now_ns=61 * SECOND + 1)
    assert sent(actions) == [{"type": "error", "message": "Stall timeout: no generation progress"}]
    assert actions[-1] == Abort()
    after, actions = on_generation_ended(session)
    assert sent(actions)[0]["stopped"] is True
    assert after.phase is Phase.OVER


@pytest.mark.parametrize("sign", ["ping", "chunk"])
def test_a_sign_of_life_starts_the_minute_again(sign: str) -> None:
    """A ping or a chunk at second 50: the stall is at 110."""
    session = streaming()
    if sign == "ping":
        session = text(session, {"type": "session.ping"}, at_s=50).session
    else:
        session = on_chunk(session, Chunk(0, 9, b"x"), now_ns=50 * SECOND).session
    assert on_clock(session, now_ns=110 * SECOND).actions == ()
    assert on_clock(session, now_ns=110 * SECOND + 1).actions != ()


def test_neither_an_interaction_nor_nonsense_is_a_sign_of_life() -> None:
    """The minute runs from the last output or ping."""
    session = text(streaming(), interaction(), at_s=50).session
    session = text(session, "{x", at_s=55).session
    assert next_deadline_ns(session) == 61 * SECOND


def test_a_stop_aborts_and_ends_without_a_trailer() -> None:
    """The engine is told; what it still gives is not sent; done says stopped and counts what was sent."""
    session = on_chunk(streaming(), Chunk(0, 9, b"x"), now_ns=2 * SECOND).session
    stopping, actions = text(session, {"type": "session.stop"})
    assert actions == (Abort(),)
    for end in (
        on_chunk(stopping, Chunk(1, 12, b"x"), now_ns=3 * SECOND),
        on_generation_ended(stopping, b"trailer"),
        on_generation_failed(stopping, "aborted"),
    ):
        done = {"type": "session.done", "request_id": "video_stream-1", "chunks": 1, "stopped": True}
        assert sent(end.actions) == [done]
        assert not any(isinstance(action, SendMedia) for action in end.actions)
        assert end.session.phase is Phase.OVER


def test_nothing_is_read_after_a_stop() -> None:
    """No pong any more."""
    stopping = text(streaming(), {"type": "session.stop"}).session
    assert text(stopping, {"type": "session.ping"}) == Step(stopping)
    assert next_deadline_ns(stopping) is None


def test_a_late_refusal_is_an_error_alone() -> None:
    """After video.start; no done, no code, no close frame."""
    after, actions = on_generation_failed(streaming(), "400: cannot open the picture")
    assert actions == (*actions[:1], Close(None))
    assert sent(actions) == [{"type": "error", "message": "400: cannot open the picture"}]
    assert after.phase is Phase.OVER


def test_an_interaction_is_acknowledged_and_handed_on() -> None:
    """In this order: what the engine makes of it comes after the answer."""
    after, (queued, forward) = text(streaming(), interaction("a"))
    assert sent((queued,)) == [
        {"type": "session.interaction.queued", "request_id": "video_stream-1", "event_id": "a"},
    ]
    assert isinstance(forward, Forward)
    assert (forward.event_id, forward.interaction.prompt) == ("a", "x")
    assert after.event_ids == {"a"}


def test_an_id_serves_once() -> None:
    """A second time is a conflict with code, request and event; the session goes on."""
    session = text(streaming(), interaction("a")).session
    after, actions = text(session, interaction("a"))
    assert sent(actions) == [
        {
            "type": "error",
            "message": "event_id_conflict",
            "code": "event_id_conflict",
            "request_id": "video_stream-1",
            "event_id": "a",
        }
    ]
    assert after == session


def test_before_the_engine_knows_the_request_an_interaction_fails_and_its_id_stays_free() -> None:
    """interaction_failed, and the same id is taken a moment later."""
    session = text(connected(), GIVEN).session
    after, actions = text(session, interaction("a"))
    (error,) = sent(actions)
    assert (error["code"], error["event_id"]) == ("interaction_failed", "a")
    _, actions = text(on_registered(after).session, interaction("a"))
    assert sent(actions)[0]["type"] == "session.interaction.queued"


def test_a_refused_interaction_does_not_take_its_id() -> None:
    """It is free for a better one."""
    session = text(streaming(), interaction("a", prompt=" ")).session
    assert sent(text(session, interaction("a")).actions)[0]["type"] == "session.interaction.queued"


def test_a_binary_first_message_is_an_error_of_one_bare_word() -> None:
    """The missing key's name, quotes and all."""
    after, actions = on_binary(connected())
    assert sent(actions) == [{"type": "error", "message": "'text'"}]
    assert after.phase is Phase.OVER


def test_a_later_binary_message_makes_the_session_deaf() -> None:
    """No pong, no stop, no stall guard; the chunks come to their end."""
    deaf, actions = on_binary(streaming())
    assert actions == ()
    assert text(deaf, {"type": "session.ping"}).actions == ()
    assert text(deaf, {"type": "session.stop"}) == Step(deaf)
    assert next_deadline_ns(deaf) is None
    assert on_clock(deaf, now_ns=10_000 * SECOND) == Step(deaf)
    done = sent(tuple(run_through(deaf, (9, 12, 12))))
    assert (done[0]["type"], done[0]["stopped"]) == ("session.done", False)


def test_a_client_that_left_is_noticed_at_the_next_chunk() -> None:
    """Until then the engine works for nobody; then it is aborted."""
    left, actions = on_client_gone(streaming())
    assert actions == ()
    assert on_chunk(left, Chunk(0, 9, b"x"), now_ns=5 * SECOND).actions != ()
    after, actions = on_send_failed(left)
    assert (after.phase, actions) == (Phase.OVER, (Abort(),))


def test_a_client_that_left_before_it_started_leaves_nothing_behind() -> None:
    """Nothing to abort."""
    after, actions = on_client_gone(connected())
    assert (after.phase, actions) == (Phase.OVER, ())
    assert on_send_failed(connected()).actions == ()


def test_once_over_nothing_happens() -> None:
    """Whatever still comes."""
    over = replace(streaming(), phase=Phase.OVER)
    assert text(over, {"type": "session.ping"}) == Step(over)
    assert on_chunk(over, Chunk(0, 9, b"x"), now_ns=0) == Step(over)
    assert on_generation_ended(over, b"trailer") == Step(over)
    assert on_generation_failed(over, "late") == Step(over)
    assert on_clock(over, now_ns=10**18) == Step(over)
    assert on_send_failed(over).actions == ()


def test_a_model_that_cannot_stream_says_so_and_closes_properly() -> None:
    """The only end with a close frame."""
    error, close = refuse_model("no streaming")
    assert (sent((error,)), close) == ([{"type": "error", "message": "no streaming"}], Close(1000))
