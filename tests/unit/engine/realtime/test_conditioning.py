"""engine.realtime.conditioning: what an event changes, when, and how the chunks tell it."""

from __future__ import annotations

from typing import Any

import pytest

from vision_bench.engine.realtime.conditioning import Conditioning, Conditions, EngineFailure
from vision_bench.wire.realtime.control import Interaction, camera_interaction

BOTH = frozenset({"prompt", "camera"})


def rollout(**changes: Any) -> Conditioning:
    """Twelve chunks that can be told everything."""
    return Conditioning(**{"prompt": "day", "num_chunks": 12, "capabilities": BOTH, **changes})


def prompt(text: str, transition_chunks: int | None = None) -> Interaction:
    """A new prompt."""
    return Interaction("id", text, {}, transition_chunks)


Events = dict[int, list[tuple[str, Interaction]]]


def run(conditioning: Conditioning, events: Events, chunks: int = 12) -> list[Conditions]:
    """All chunks; ``events`` says which come while which chunk is being made."""
    made = []
    for index in range(chunks):
        made.append(conditioning.next_chunk(index))
        for event_id, interaction in events.get(index, []):
            conditioning.submit(event_id, interaction, generating=index)
    return made


def listed(made: list[Conditions], name: str, event_id: str) -> list[int]:
    """Chunks that list the event so."""
    return [one.index for one in made if event_id in getattr(one, f"{name}_event_ids")]


def test_a_viewer_sees_an_event_three_chunks_after_the_last_one_received() -> None:
    """Chunk 1 received, chunk 2 being made: chunk 4 is the first that is changed; it lists the event once."""
    made = run(rollout(), {2: [("e", prompt("night"))]})
    assert listed(made, "started", "e") == [4]
    assert [one.prompt for one in made[3:5]] == ["day", "night"]


def test_the_pipelines_depth_can_be_another() -> None:
    """Engines that look at events between steps: two chunks."""
    made = run(rollout(pipeline_chunks=2), {2: [("e", prompt("night"))]})
    assert listed(made, "started", "e") == [3]


def test_a_prompts_transition_takes_three_chunks_unless_it_says_otherwise() -> None:
    """Active from the first to the last of them, completed on the last, its share growing to 1."""
    made = run(rollout(), {0: [("e", prompt("night"))]})
    assert (listed(made, "active", "e"), listed(made, "completed", "e")) == ([2, 3, 4], [4])
    assert [one.prompt_share for one in made[1:6]] == pytest.approx([1, 1 / 3, 2 / 3, 1, 1])


@pytest.mark.parametrize("chunks", [0, 1])
def test_a_hard_switch_is_started_active_and_completed_at_once(chunks: int) -> None:
    """On one chunk, in full."""
    made = run(rollout(), {0: [("e", prompt("night", chunks))]})
    assert [listed(made, name, "e") for name in ("started", "active", "completed")] == [[2], [2], [2]]
    assert made[2].prompt_share == 1.0


def test_of_two_prompts_at_one_boundary_the_first_never_was() -> None:
    """Acknowledged, and in no list of any chunk."""
    made = run(rollout(), {2: [("first", prompt("rain")), ("second", prompt("night"))]})
    assert [listed(made, name, "first") for name in ("started", "active", "completed")] == [[], [], []]
    assert (made[4].prompt, listed(made, "started", "second")) == ("night", [4])


def test_a_prompt_that_is_replaced_in_mid_transition_never_completes() -> None:
    """It started and was active until the other came."""
    made = run(rollout(), {0: [("first", prompt("rain"))], 1: [("second", prompt("night"))]})
    assert (listed(made, "active", "first"), listed(made, "completed", "first")) == ([2], [])
    assert listed(made, "completed", "second") == [5]


def test_a_velocity_moves_every_latent_frame_until_it_is_replaced() -> None:
    """0.05 a frame, three frames a chunk; completed on the chunk that the next command starts on."""
    forward = camera_interaction(event_id="f", translation=(0, 0, 0.05), transition_chunks=7)
    stop = camera_interaction(event_id="s")
    made = run(rollout(), {0: [("f", forward)], 4: [("s", stop)]})
    assert [pose.position[2] for pose in made[2].poses] == pytest.approx([0.05, 0.10, 0.15])
    assert made[5].poses[2].position[2] == pytest.approx(0.6)
    assert made[9].poses[2].position[2] == pytest.approx(0.6)
    assert (listed(made, "active", "f"), listed(made, "completed", "f")) == ([2, 3, 4, 5], [6])
    assert (listed(made, "started", "s"), listed(made, "completed", "s")) == ([6], [])


def test_a_target_is_reached_after_its_transition() -> None:
    """Six latent frames of two chunks, evenly, and there it stays; one chunk when nothing is said."""
    go = camera_interaction(event_id="t", mode="target", translation=(6, 0, 0), transition_chunks=2)
    made = run(rollout(), {0: [("t", go)]})
    positions = [pose.position[0] for one in made[2:5] for pose in one.poses]
    assert positions == pytest.approx([1, 2, 3, 4, 5, 6, 6, 6, 6])
    assert (listed(made, "active", "t"), listed(made, "completed", "t")) == ([2, 3], [3])
    made = run(rollout(), {0: [("t", camera_interaction(event_id="t", mode="target", translation=(6, 0, 0)))]})
    assert (made[2].poses[2].position[0], listed(made, "completed", "t")) == (6, [2])


def test_a_jump_is_there_with_its_first_frame() -> None:
    """transition_chunks 0."""
    go = camera_interaction(event_id="t", mode="target", translation=(6, 0, 0), transition_chunks=0)
    made = run(rollout(), {0: [("t", go)]})
    assert [pose.position[0] for pose in made[2].poses] == [6, 6, 6]
    assert listed(made, "completed", "t") == [2]


def test_an_event_of_two_parts_is_complete_when_both_are() -> None:
    """A prompt of three chunks and a camera of one: started once, completed once, with the longer."""
    both = Interaction("b", "night", camera_interaction(event_id="b", mode="target").modalities, None)
    made = run(rollout(), {0: [("b", both)]})
    assert (listed(made, "started", "b"), listed(made, "completed", "b")) == ([2], [4])
    assert made[2].started_event_ids == made[2].active_event_ids == ("b",)


def test_a_script_steers_from_the_second_latent_frame_on() -> None:
    """The first is the picture that was given; then w w, then a turn."""
    script = [[["w"], ["w"], ["W"]], [["w", "w"], [], ["l"]]]
    conditioning = rollout(num_chunks=2, script=script)
    first, second = conditioning.next_chunk(0), conditioning.next_chunk(1)
    assert [pose.position[2] for pose in first.poses] == pytest.approx([0, 0.05, 0.10])
    assert [pose.position[2] for pose in second.poses] == pytest.approx([0.15, 0.15, 0.15])
    assert second.poses[2].rotation != second.poses[1].rotation


def test_without_script_and_events_nothing_moves() -> None:
    """Every pose is the first one."""
    made = run(rollout(), {})
    assert {pose for one in made for pose in one.poses} == {made[0].poses[0]}


def test_an_event_that_is_too_late_never_starts() -> None:
    """While chunk n - 2 is made its first chunk would be n: acknowledged, not refused, in no list."""
    made = run(rollout(num_chunks=6), {4: [("late", prompt("night"))]}, chunks=6)
    assert listed(made, "started", "late") == []


@pytest.mark.parametrize(
    ("changes", "interaction", "generating", "says"),
    [
        ({}, prompt("x"), None, "before the request was prepared"),
        ({}, prompt("x"), 11, "No active request"),
        ({"capabilities": frozenset({"camera"})}, prompt("x"), 0, "Unsupported interaction modality: prompt"),
        ({"capabilities": frozenset({"prompt"})}, camera_interaction(event_id="e"), 0, "modality: camera"),
        ({}, Interaction("e", None, {"sound": {}}, None), 0, "modality: sound"),
        ({"script": [[[], [], []]] * 12}, camera_interaction(event_id="e"), 0, "cannot be combined"),
        ({}, camera_interaction(event_id="e", rotation=(0, 0, 0, 0)), 0, "zero quaternion"),
    ],
)
def test_what_was_acknowledged_and_ends_the_session(
    changes: dict[str, Any], interaction: Interaction, generating: int | None, says: str
) -> None:
    """Too early, during the last chunk, an unknown modality, a camera beside a script, a pose that is none."""
    with pytest.raises(EngineFailure, match=says):
        rollout(**changes).submit("e", interaction, generating=generating)


def test_a_chunk_that_is_being_made_is_out_of_reach() -> None:
    """A pipeline of one chunk would change it."""
    with pytest.raises(ValueError, match="pipeline_chunks is 1"):
        rollout(pipeline_chunks=1)


def test_a_prompt_beside_a_script_is_fine() -> None:
    """Only the camera is the script's."""
    rollout(script=[[[], [], []]] * 12).submit("e", prompt("night"), generating=0)
