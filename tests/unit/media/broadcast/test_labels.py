"""What the labels say of a programme."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.media.broadcast.rig import hummed

from vision_bench.errors import InvalidMedia
from vision_bench.media.broadcast.labels import label_programme, read_labels
from vision_bench.media.broadcast.wording import latin_words, says


def test_windows_have_the_names_of_the_clips() -> None:
    """After 600 s of lead the clips are 0001_0600-0606 to 0012_0666-0672, as the seed's loop names them."""
    labels = label_programme(hummed("baseball", lead=600))
    assert labels["windows"][0]["clip"] == "0001_0600-0606"
    assert labels["windows"][-1]["clip"] == "0012_0666-0672"
    assert len(labels["windows"]) == 12


def test_a_remainder_is_no_window() -> None:
    """13 s hold two whole windows."""
    assert len(label_programme(hummed("drama", seconds=13))["windows"]) == 2


def test_window_frames_add_up() -> None:
    """A window of 29.97 frames a second holds 179 or 180; all windows together hold every frame after the lead."""
    labels = label_programme(hummed("baseball", lead=600))
    counts = [window["frames"] for window in labels["windows"]]
    assert set(counts) == {179, 180}
    assert sum(counts) == labels["frames"] - labels["lead_frames"]


def test_labels_are_plain_json() -> None:
    """They survive a round through JSON unchanged, so a reader sees what the writer meant."""
    labels = label_programme(hummed("entertain"))
    assert json.loads(json.dumps(labels, allow_nan=False)) == labels


def test_heard_facts_are_not_on_the_screen_and_shown_ones_not_spoken() -> None:
    """No wording of an audio_only fact stands in a text of its window; no video_only text is spoken in it."""
    found = 0
    for genre in ("news", "docu", "drama", "hist_drama", "entertain", "baseball", "esports"):
        for window in label_programme(hummed(genre, seconds=144))["windows"]:
            shown = " ".join(text["text"] for text in window["texts"])
            spoken = " ".join(line["text"] for line in window["speech"])
            for fact in window["audio_only"]:
                found += 1
                assert not any(says(shown, wording) for wording in fact["accept"])
                assert any(says(spoken, wording) for wording in fact["accept"])
            for fact in window["video_only"]:
                found += 1
                assert says(shown, fact["value"])
                assert not says(spoken, fact["value"])
    assert found > 100


def test_measurable_facts_are_told_by_sense() -> None:
    """Sound gives beeps, speech and silence; the picture cuts, flashes, shapes, text, black and frozen seconds."""
    measurable = label_programme(hummed("baseball"))["windows"][0]["measurable"]
    assert set(measurable["audio"]) == {"beeps", "speech_seconds", "silent_seconds"}
    assert set(measurable["video"]) == {"cuts", "black_seconds", "frozen_seconds", "flashes", "shapes", "latin_text"}
    assert measurable["video"]["flashes"]["needs_fps"] == 12


def test_every_window_of_measured_seconds_adds_up_to_the_programmes() -> None:
    """Black, frozen and silent seconds over the windows are those of the scenes."""
    labels = label_programme(hummed("baseball"))
    for name, sense, is_so in (
        ("black_seconds", "video", lambda scene: scene["is_black"]),
        ("silent_seconds", "audio", lambda scene: scene["is_silent"]),
        ("frozen_seconds", "video", lambda scene: scene["kind"] == "frozen"),
    ):
        told = sum(window["measurable"][sense][name]["value"] for window in labels["windows"])
        there = sum(scene["end_seconds"] - scene["start_seconds"] for scene in labels["scenes"] if is_so(scene))
        assert told == pytest.approx(there, abs=0.01)
        assert there > 0


def test_cuts_flashes_and_beeps_of_windows_add_up() -> None:
    """A cut on a window's edge belongs to no window; every flash and beep belongs to one."""
    labels = label_programme(hummed("baseball"))
    marks = labels["marks"]["items"]
    edges = {window["first_frame"] for window in labels["windows"]}
    cuts = [scene["first_frame"] for scene in labels["scenes"] if scene["first_frame"] not in edges]
    measurable = [window["measurable"] for window in labels["windows"]]
    assert sum(it["video"]["cuts"]["value"] for it in measurable) == len(cuts)
    assert sum(it["video"]["flashes"]["value"] for it in measurable) == sum(mark["flash"] for mark in marks)
    assert sum(it["audio"]["beeps"]["value"] for it in measurable) == sum(mark["beep"] for mark in marks)
    assert any(mark["flash"] and not mark["beep"] for mark in marks)
    assert any(mark["beep"] and not mark["flash"] for mark in marks)


def test_without_a_stamp_flashes_and_beeps_are_no_facts() -> None:
    """There are none, and nobody is asked to count none."""
    labels = label_programme(hummed("baseball", stamp=False))
    assert labels["stamp"] is None
    assert labels["marks"] is None
    assert "flashes" not in labels["windows"][0]["measurable"]["video"]
    assert "beeps" not in labels["windows"][0]["measurable"]["audio"]


def test_latin_words_are_letters_or_digits() -> None:
    """Runs of either, upper case; Hangul and signs are left out."""
    assert latin_words("Time 02:10  곰 3회") == ["TIME", "02", "10", "3"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"format": 99}', b"\xff\xfe"])
def test_a_file_that_is_no_label_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """The message names the file."""
    path = tmp_path / "x.labels.json"
    path.write_bytes(content)
    with pytest.raises(InvalidMedia, match=r"x\.labels\.json"):
        read_labels(path)
