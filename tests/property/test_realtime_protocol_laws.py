"""Laws of a session: whatever comes in whatever order, it ends once, says what it sent, and raises nothing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vision_bench.engine.realtime.late import Deployment, late_error
from vision_bench.engine.realtime.protocol import (
    Chunk,
    Close,
    Phase,
    Send,
    SendMedia,
    Session,
    Step,
    on_binary,
    on_chunk,
    on_client_gone,
    on_clock,
    on_generation_ended,
    on_generation_failed,
    on_registered,
    on_text,
)
from vision_bench.wire.realtime.camera import read_camera
from vision_bench.wire.realtime.control import ControlRefused, Interaction, read_control
from vision_bench.wire.realtime.events import read_event
from vision_bench.wire.realtime.fields import START_FIELDS
from vision_bench.wire.realtime.start import StartRefused, read_start

few = settings(max_examples=40)
"""Drawing any JSON is slow, and these hold or break on small pieces of it."""

START = json.dumps({"type": "session.start", "prompt": "p", "num_frames": 33})
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
messages = st.sampled_from(
    [
        START,
        "{x",
        "[]",
        '{"type": "session.ping"}',
        '{"type": "session.stop"}',
        '{"type": "session.interaction", "interaction": {"event_id": "a", "event": {"prompt": "x"}}}',
        '{"type": "session.interaction", "interaction": {"event": {}}}',
    ]
)
happenings = st.one_of(
    st.tuples(st.just("text"), messages),
    st.tuples(st.just("chunk"), st.sampled_from([b"", b"media"])),
    st.tuples(st.sampled_from(["binary", "gone", "registered", "ended", "failed", "late"]), st.none()),
)


def happen(session: Session, kind: str, what: Any, at: int) -> Step:
    """Put one thing to the session, ``at`` counting what came before."""
    now_ns = at * 1_000_000_000
    match kind:
        case "text":
            return on_text(session, what, now_ns=now_ns, fresh_id=f"{at:032x}")
        case "chunk":
            return on_chunk(session, Chunk(at, 12, what), now_ns=now_ns)
        case "binary":
            return on_binary(session)
        case "gone":
            return on_client_gone(session)
        case "registered":
            return on_registered(session)
        case "ended":
            return on_generation_ended(session, b"trailer")
        case "failed":
            return on_generation_failed(session, "failed")
        case _:
            return on_clock(session, now_ns=10**15)


@given(st.lists(happenings, max_size=25), st.booleans())
def test_a_session_ends_at_most_once_and_counts_what_it_sent(drawn: list[tuple[str, Any]], is_started: bool) -> None:
    """Nothing follows the end; binary frames are numbered without a gap; done holds their count."""
    session = Session("m", "video_stream-1", 0)
    if is_started:
        drawn = [("text", START), ("registered", None), *drawn]
    media = 0
    for at, (kind, what) in enumerate(drawn):
        was_over = session.phase is Phase.OVER
        session, actions = happen(session, kind, what, at)
        assert not (was_over and actions)
        for action in actions:
            if isinstance(action, SendMedia):
                assert action.metadata.transport_chunk_index == media
                assert action.metadata.byte_length == len(action.data) > 0
                media += 1
        assert session.frames_sent == media
        messages_out = [action.event.to_message() for action in actions if isinstance(action, Send)]
        assert [message["chunks"] for message in messages_out if message["type"] == "session.done"] in ([], [media])
        assert (Close() in actions) <= (session.phase is Phase.OVER)
        for message in messages_out:
            read_event(json.dumps(message))


@few
@given(st.dictionaries(st.sampled_from([*START_FIELDS, "type", "format", "sampling_params"]), anything, max_size=6))
def test_any_start_is_read_or_refused(given_fields: dict[str, Any]) -> None:
    """Never another error; one that is read comes to numbers or to a late refusal."""
    message = json.dumps({"type": "session.start", "prompt": "p", **given_fields})
    try:
        start = read_start(message, model="m")
    except StartRefused as refused:
        assert str(refused)
        return
    assert start.fps >= 1
    assert start.num_chunks >= 0
    assert late_error(start, Deployment()) != ""


@few
@given(st.dictionaries(st.sampled_from(["event_id", "event", "transition_chunks"]), anything, max_size=3))
def test_any_interaction_is_read_or_refused(interaction: dict[str, Any]) -> None:
    """One that is read says the same when it is written again."""
    message = json.dumps({"type": "session.interaction", "interaction": interaction})
    try:
        found = read_control(message)
    except ControlRefused:
        return
    assert isinstance(found, Interaction)
    again = json.dumps(found.to_message())
    assert json.dumps(read_control(again).to_message()) == again  # type: ignore[union-attr]


@few
@given(
    st.fixed_dictionaries({}, optional={"prompt": anything, "multi_modal_data": anything, "negative_prompt": anything})
)
def test_any_event_is_read_or_refused(event: dict[str, Any]) -> None:
    """Every combination of prompt and modalities."""
    try:
        read_control(json.dumps({"type": "session.interaction", "interaction": {"event": event}}))
    except ControlRefused as refused:
        assert str(refused).startswith("session.interaction ")


@few
@given(anything, anything | st.lists(st.floats() | st.integers(), min_size=4, max_size=4))
def test_any_camera_is_read_or_refused(mode: Any, rotation: Any) -> None:
    """A turn that is read has length 1, from the smallest numbers to the largest."""
    for payload in (
        {"mode": mode, "data": rotation},
        {"data": {"translation": rotation}},
        {"data": {"rotation": rotation}},
    ):
        try:
            command = read_camera(payload)
        except ValueError:
            continue
        assert abs(sum(part * part for part in command.rotation) - 1) < 1e-9


@few
@given(anything, st.text(max_size=30))
def test_any_server_event_is_read_or_refused(value: Any, raw: str) -> None:
    """ValueError and no other, whether it is JSON or not."""
    for message in (json.dumps(value), raw, json.dumps({"type": "video.chunk_metadata", "kind": value})):
        try:
            read_event(message)
        except ValueError:
            continue
