"""wire.realtime.control: every message of a running session, and every way to get one wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.wire.realtime.control import (
    MAX_CONTROL_CHARACTERS,
    PING,
    STOP,
    ControlRefused,
    Interaction,
    Ping,
    Stop,
    camera_interaction,
    read_control,
)


def interaction(**fields: Any) -> str:
    """The message with that interaction."""
    return json.dumps({"type": "session.interaction", "interaction": fields})


def test_ping_and_stop_need_nothing_else() -> None:
    """Further keys do no harm."""
    assert read_control(json.dumps(PING)) == Ping()
    assert read_control(json.dumps(STOP)) == Stop()
    assert read_control('{"type": "session.ping", "at": 5}') == Ping()


def test_an_interaction_reads_as_it_was_written() -> None:
    """Prompt, modalities, id and transition; what is not given is not sent."""
    full = Interaction("a", "night", {"camera": {"mode": "velocity"}}, 2)
    for written in (full, Interaction(None, "night", {}, None), camera_interaction(event_id="c")):
        assert read_control(json.dumps(written.to_message())) == written
    assert Interaction(None, "x", {}, None).to_message() == {
        "type": "session.interaction",
        "interaction": {"event": {"prompt": "x"}},
    }


def test_nulls_are_not_given() -> None:
    """event_id, the other half of the event and the transition may be null."""
    message = interaction(
        event_id=None,
        event={"prompt": "q", "multi_modal_data": None, "negative_prompt": None},
        transition_chunks=None,
    )
    assert read_control(message) == Interaction(None, "q", {}, None)


@pytest.mark.parametrize("chunks", [0, 3, 2.0])
def test_a_transition_is_a_whole_number_however_written(chunks: float) -> None:
    """2.0 is 2."""
    found = read_control(interaction(event={"prompt": "q"}, transition_chunks=chunks))
    assert isinstance(found, Interaction)
    assert json.dumps(found.transition_chunks) == str(int(chunks))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("{x", "Invalid JSON message"),
        ("[" * 5000, "Invalid JSON message"),
        ("[1]", "WebSocket messages must be JSON objects"),
        ('{"type": "session.start"}', "Unknown message type: session.start"),
        ('{"type": "session.end"}', "Unknown message type: session.end"),
        ("{}", "Unknown message type: None"),
        (" " * (MAX_CONTROL_CHARACTERS + 1), "control message too large"),
        ('{"type": "session.interaction"}', "session.interaction requires an interaction object"),
        ('{"type": "session.interaction", "interaction": []}', "session.interaction requires an interaction object"),
        (interaction(), "session.interaction requires event object"),
        (interaction(event="x"), "session.interaction requires event object"),
        (interaction(event_id="", event={"prompt": "x"}), "session.interaction event_id must be a non-empty string"),
        (interaction(event_id=5, event={"prompt": "x"}), "session.interaction event_id must be a non-empty string"),
        (interaction(event={"prompt": " "}), "session.interaction requires a non-empty event.prompt"),
        (interaction(event={"prompt": 5}), "session.interaction requires a non-empty event.prompt"),
        (
            interaction(event={"prompt": "", "multi_modal_data": {"camera": {}}}),
            "session.interaction requires a non-empty event.prompt",
        ),
        (
            interaction(event={}),
            "session.interaction requires a non-empty event.prompt or event.multi_modal_data",
        ),
        (
            interaction(event={"multi_modal_data": {}}),
            "session.interaction event.multi_modal_data must be a non-empty object",
        ),
        (
            interaction(event={"prompt": "ok", "multi_modal_data": {}}),
            "session.interaction event.multi_modal_data must be a non-empty object",
        ),
        (
            interaction(event={"multi_modal_data": {"camera": 3}}),
            "session.interaction event.multi_modal_data.camera must be an object",
        ),
        (
            interaction(event={"prompt": "q", "negative_prompt": "n"}),
            "session.interaction negative_prompt is not supported in this release",
        ),
        *(
            (
                interaction(event={"prompt": "q"}, transition_chunks=chunks),
                "session.interaction transition_chunks must be an integer",
            )
            for chunks in (2.5, True, "3", float("inf"), float("nan"), [])
        ),
        (
            interaction(event={"prompt": "q"}, transition_chunks=-1),
            "session.interaction transition_chunks must be >= 0",
        ),
    ],
)
def test_each_refusal_has_the_servers_words(message: str, told: str) -> None:
    """One rule each, in the order in which the server looks."""
    with pytest.raises(ControlRefused) as refused:
        read_control(message)
    assert str(refused.value) == told


def test_the_longest_message_passes() -> None:
    """128 Ki characters are allowed, one more is not."""
    shell = interaction(event={"prompt": ""})
    full = interaction(event={"prompt": "x" * (MAX_CONTROL_CHARACTERS - len(shell))})
    assert isinstance(read_control(full), Interaction)
