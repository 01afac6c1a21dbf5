"""A workload file and the flags that win over it, as what is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.realtime.keys import RealtimeFlags
from vision_bench.bench.realtime.specification import Prepared, prepare
from vision_bench.bench.realtime.workload import DEFAULT_MODEL, DEFAULT_PROMPT, build_camera_script
from vision_bench.bench.workload import read_workload
from vision_bench.errors import InvalidRequest

JPEG = b"\xff\xd8\xff rest"
TOML = 'name = "x"\nkind = "realtime"\nimage = "first.jpg"\n'


def made(folder: Path, content: str | dict[str, Any], **flags: Any) -> Prepared:
    (folder / "first.jpg").write_bytes(JPEG)
    file = folder / ("w.toml" if isinstance(content, str) else "w.json")
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return prepare(read_workload(file), RealtimeFlags(**flags))


def start(prepared: Prepared) -> dict[str, Any]:
    return dict(json.loads(prepared.plan.start))


def test_both_forms_of_file_send_the_same(tmp_path: Path) -> None:
    """The published JSON as it is, and our TOML with the same keys: one start message, one picture as a data: URL."""
    of_toml = made(tmp_path, TOML + "num_chunks = 9\n")
    of_json = made(tmp_path, {"image": "first.jpg", "num_chunks": 9})
    assert start(of_toml) == start(of_json)
    assert start(of_toml)["image_reference"]["image_url"].startswith("data:image/jpeg;base64,/9j/")
    assert (start(of_json)["model"], start(of_json)["prompt"]) == (DEFAULT_MODEL, DEFAULT_PROMPT)
    assert of_toml.fingerprint == of_json.fingerprint
    assert (of_toml.basis.fps, of_toml.warnings) == (16.0, ())


def test_a_flag_wins_also_when_it_is_0_or_empty(tmp_path: Path) -> None:
    """0 and empty text are given; each is then refused or sent for what it is."""
    file = {"image": "first.jpg", "num_chunks": 9, "seed": 7, "flow_shift": 3, "width": 64, "prompt": "a"}
    sent = start(made(tmp_path, file, seed=0, flow_shift=0.0, width=32, height=48, num_chunks=8, fps=12.5))
    assert (sent["seed"], sent["extra_params"]["flow_shift"]) == (0, 0.0)
    assert (sent["width"], sent["height"], sent["fps"], sent["num_frames"]) == (32, 48, 12.5, 93)
    for flags, said in (
        ({"prompt": ""}, "prompt is blank"),
        ({"image": ""}, "names no picture"),
        ({"num_chunks": 0}, "num_chunks is 0"),
        ({"fps": 0.0}, "fps is 0"),
        ({"width": 0}, "width is 0"),
        ({"camera_pattern": ""}, "choose one of"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            made(tmp_path, file, **flags)


def test_a_flag_for_the_camera_wins_over_the_files_script(tmp_path: Path) -> None:
    """A pattern keeps the script's length, a count makes a new script."""
    file = {"image": "first.jpg", "camera_action_script": build_camera_script(9, "hold")}
    turned = start(made(tmp_path, file, camera_pattern="orbit"))
    assert turned["extra_params"]["camera_action_script"] == build_camera_script(9, "orbit")
    longer = start(made(tmp_path, file, num_chunks=12))
    assert longer["extra_params"]["camera_action_script"] == build_camera_script(12, "forward")


def test_live_camera_events_leave_the_script_out(tmp_path: Path) -> None:
    """A script and live events end a session; at one boundary the prompt goes before the camera."""
    events = "[[camera_events]]\nafter_chunk = 1\ntranslation = [0, 0, 0.05]\n"
    updates = '[[prompt_updates]]\nafter_chunk = 1\nprompt = "rain"\n'
    prepared = made(tmp_path, TOML + "num_chunks = 9\n" + updates + events)
    assert "camera_action_script" not in start(prepared)["extra_params"]
    assert start(prepared)["num_frames"] == 105
    ids = [json.loads(text)["interaction"]["event_id"] for text in prepared.plan.interactions[1]]
    assert ids == ["chunk-1", "camera-1"]


def test_the_watching_rate_is_apart_from_the_files(tmp_path: Path) -> None:
    """The message has one, the basis the other."""
    prepared = made(tmp_path, TOML + "num_chunks = 9\nfps = 24\ntarget_fps = 12\nslo_ms = 800\nbuffer_chunks = 2\n")
    assert (start(prepared)["fps"], prepared.basis.fps, prepared.basis.slo_ms) == (24, 12.0, 800)
    assert made(tmp_path, TOML + "num_chunks = 9\n", target_fps=30.0, buffer_chunks=3).basis.buffer_chunks == 3


def test_what_is_late_or_short_is_said_and_not_refused(tmp_path: Path) -> None:
    """An event after chunk n - 4 can start no more; seven chunks have no steady interval; unknown keys of JSON."""
    update = {"after_chunk": 4, "prompt": "rain"}
    prepared = made(tmp_path, {"image": "first.jpg", "num_chunks": 7, "prompt_updates": [update], "mood": 1})
    assert [warning.split(";")[0].split(" in 7")[0] for warning in prepared.warnings] == [
        "keys that nobody reads: mood",
        "what is sent after chunk 4 can start no more",
        "7 chunks have no steady interval",
    ]
    assert not made(tmp_path, {"image": "first.jpg", "num_chunks": 8, "prompt_updates": [update]}).warnings


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (TOML, "no length"),
        (TOML + "num_chunks = 9\nmood = 1\n", "unknown key 'mood'"),
        ({"num_chunks": 9}, "names no picture"),
        ({"image": "other.jpg", "num_chunks": 9}, "cannot be read"),
        ({"image": "w.json", "num_chunks": 9}, "neither JPEG, PNG nor WebP"),
        ({"image": "first.jpg", "num_chunks": 9, "prompt": None}, "prompt is null"),
        ({"image": "first.jpg", "num_chunks": 9, "prompt_updates": [{"prompt": "a"}]}, "has no 'after_chunk'"),
        ({"image": "first.jpg", "num_chunks": 9, "width": 100}, "multiple of 16"),
        ({"image": "data:image/png;base64," + "A" * 4_200_000, "num_chunks": 9}, "a server takes 4194304"),
        (TOML + "num_chunks = 9\nflow_shift = nan\n", "flow_shift is nan; it must be finite"),
        (TOML + "num_chunks = 9\nchunk_timeout_seconds = inf\n", "chunk_timeout_seconds is inf"),
        (TOML + "num_chunks = 9\n[extra_params]\na = [2026-01-01]\n", r"extra_params\.a\[0\] is a date, which JSON"),
        (TOML + "num_chunks = 9\n[[camera_events]]\nafter_chunk = 1\ntranslation = [0, nan, 0]\n", "is nan"),
        ({"image": "first.jpg", "num_chunks": 9, "prompt": "a\udcff"}, "prompt holds '.udcff', which is no character"),
        ({"image": "first.jpg", "num_chunks": 9, "extra_params": {"\ud800": 1}}, "a key of extra_params holds"),
        ({"image": "first.jpg", "num_chunks": 10**9}, "a session.start holds at most 419430"),
        (TOML + "num_chunks = 9\nbuffer_chunks = 10\n", "playback starts with 1 to 9"),
        (TOML + "num_chunks = 9\ndrop_after_chunk = 2\n", "belong together"),
        (TOML + "num_chunks = 9\n[[camera_events]]\nafter_chunk = 9\n", "never sent"),
        (TOML + 'num_chunks = 9\n[[camera_events]]\nafter_chunk = 1\nmode = "spin"\n', "spin"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, said: str) -> None:
    """File or flag, value and remedy."""
    with pytest.raises(InvalidRequest, match=said):
        made(tmp_path, content)


def test_flags_that_no_message_carries(tmp_path: Path) -> None:
    """A command line may hold bytes that are no text, and numbers without end."""
    for flags in ({"prompt": "a\udcff"}, {"flow_shift": float("nan")}, {"num_chunks": 10**9}, {"model": "\udcff"}):
        with pytest.raises(InvalidRequest, match=r"which is no character|must be finite|holds at most"):
            made(tmp_path, {"image": "first.jpg", "num_chunks": 9}, **flags)


def test_what_a_run_changes_leaves_a_null_where_it_is(tmp_path: Path) -> None:
    """A null of the file is a fault to be told, not a key that a run takes out when it changes others."""
    (tmp_path / "w.json").write_text('{"num_chunks": 9, "prompt": null, "seed": 1}')
    file = read_workload(tmp_path / "w.json").changed({"seed": None, "fps": 12})
    assert file.values == {"name": "w", "kind": "realtime", "num_chunks": 9, "prompt": None, "fps": 12}


def test_a_file_that_is_no_json_object(tmp_path: Path) -> None:
    """Refused by name."""
    for text, said in (("{", "is not JSON"), ("[]", "holds list")):
        (tmp_path / "w.json").write_text(text)
        with pytest.raises(InvalidRequest, match=said):
            read_workload(tmp_path / "w.json")


def test_the_fingerprint_follows_what_is_sent(tmp_path: Path) -> None:
    """Another picture, prompt or event is another workload; the rate of watching is not."""
    base = made(tmp_path, TOML + "num_chunks = 9\n")
    assert made(tmp_path, TOML + "num_chunks = 9\n", target_fps=30.0).fingerprint == base.fingerprint
    assert made(tmp_path, TOML + "num_chunks = 9\n", prompt="b").fingerprint != base.fingerprint
    events = "[[camera_events]]\nafter_chunk = 1\n"
    assert made(tmp_path, TOML + "num_chunks = 9\n" + events).fingerprint != base.fingerprint
