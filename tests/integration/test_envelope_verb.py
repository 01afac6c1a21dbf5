"""``vision-bench envelope`` from its command line to its choice, against a server that really looks and listens."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.stub_upstream import StubRequest, StubUpstream, response, stub_upstream
from tests.integration.tiny_clips import write_clips

from vision_bench.bench.choice import choice_path, read_choice
from vision_bench.bench.envelope.study import StudyOptions, run_study
from vision_bench.cli.main import main
from vision_bench.media.audio import decode_audio
from vision_bench.media.frames import decode_frames

CLIPS = 6
FACTS = [
    {"item": "*", "fact": "light", "scorer": "exact", "field": "light", "value": "yes", "sense": "picture"},
    {"item": "*", "fact": "sharp", "scorer": "exact", "field": "sharp", "value": "yes", "sense": "picture"},
    {"item": "*", "fact": "loud", "scorer": "exact", "field": "loud", "value": "yes", "sense": "sound"},
]


def perceive(body: dict[str, Any]) -> tuple[dict[str, str], int]:
    """What can be seen and heard of the clip in a body, and its prompt tokens: sharp from 64 lines and 2 fps on."""
    clip = base64.b64decode(body["messages"][-1]["content"][0]["video_url"]["url"].partition(",")[2])
    frames, sound = decode_frames(clip).frames, decode_audio(clip, rate=16_000)
    fps = body["media_io_kwargs"]["video"]["fps"]
    hears = body.get("mm_processor_kwargs", {}).get("use_audio_in_video", False) and sound is not None
    is_light, is_sharp = frames.max() > 100, frames.shape[1] >= 64 and fps >= 2
    if body["model"] == "guesses":
        is_light = is_sharp = hears = True
        sound = np.ones(1, np.float32)
    facts = {
        "light": is_light,
        "sharp": is_light and is_sharp,
        "loud": hears and sound is not None and bool(np.abs(sound).max() > 0.05),
    }
    return {name: "yes" if value else "no" for name, value in facts.items()}, int(fps * frames.shape[1])


async def answer(request: StubRequest, writer: Any) -> None:
    text, tokens = perceive(request.json()) if request.path.endswith("completions") else ({}, 0)
    usage = {"prompt_tokens": tokens, "completion_tokens": 3, "total_tokens": tokens + 3}
    message = {"role": "assistant", "content": json.dumps(text)}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    writer.write(response(json.dumps({"choices": choices, "usage": usage}).encode()))
    await writer.drain()


def workload(folder: Path, **values: Any) -> Path:
    write_clips(folder / "clips", CLIPS)
    (folder / "labels.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in FACTS))
    media = {"media": "video", "clips": "clips", "fps": 1.0, "use_audio": True, "stream": False}
    return workload_file(folder, **media | {"labels": "labels.jsonl"} | values)


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    """The server, in a thread of its own: the verb has an event loop of its own, and wants the main thread."""
    ready, end = threading.Event(), threading.Event()
    found: list[StubUpstream] = []

    async def serve() -> None:
        async with stub_upstream(answer) as running:
            found.append(running)
            ready.set()
            await asyncio.to_thread(end.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(30)
    yield found[0]
    end.set()
    thread.join(30)


def status_of(*words: object) -> int:
    """The exit status of a command line."""
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, words)))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def envelope(url: str, folder: Path, *words: str, out: str = "study") -> int:
    flags = ("--target", url, "--out", folder / out, "--warmup", "0")
    return status_of("envelope", folder / "workload.toml", *flags, *words)


def asked(stub: StubUpstream) -> int:
    """How many questions have come."""
    return sum(request.path.endswith("completions") for request in stub.requests)


def test_the_smallest_envelope_that_is_accurate_enough(stub: StubUpstream, tmp_path: Path) -> None:
    """Of four, the one that can be read; controls pass; table, page and choice are there; a run calls it used, then
    stale.
    """
    file = workload(tmp_path)
    assert envelope(stub.base_url, tmp_path, "--fps", "1,2", "--height", "32,64", "--threshold", "0.9") == 0
    study = json.loads((tmp_path / "study" / "envelope.json").read_bytes())
    assert {row["words"]: row["accuracy"]["right"] for row in study["rows"]} == {
        "32 lines, 1 fps, with sound": 2 * CLIPS,
        "32 lines, 2 fps, with sound": 2 * CLIPS,
        "64 lines, 1 fps, with sound": 2 * CLIPS,
        "64 lines, 2 fps, with sound": 3 * CLIPS,
    }
    assert [row["words"] for row in study["choice"]["chosen"]] == ["64 lines, 2 fps, with sound"]
    assert {one["control"]: one["verdict"] for one in study["controls"]} == {"blackout": "PASS", "muted": "PASS"}
    assert study["flags"] == [] and study["is_complete"]
    assert "64 lines, 2 fps" in (tmp_path / "study" / "report.html").read_text()
    assert read_choice(choice_path(file)) == study["choice"]
    (tmp_path / "study" / "report.html").unlink()
    assert status_of("report", tmp_path / "study") == 0
    assert "64 lines, 2 fps" in (tmp_path / "study" / "report.html").read_text()
    assert json.loads((tmp_path / "study" / "envelope.json").read_bytes()) == study
    for number, (values, is_used, stale) in enumerate(
        (
            ({"height": 64, "fps": 2.0}, True, []),
            ({"height": 32, "fps": 2.0}, False, []),
            ({"height": 64, "fps": 2.0, "prompt": "?"}, True, ["prompt"]),
        )
    ):
        out = tmp_path / f"run-{number}"
        load = ("--out", out, "--concurrency", "1", "--requests", "1")
        assert status_of("run", workload(tmp_path, **values), "--target", stub.base_url, *load) == 0
        told = json.loads((out / "summary.json").read_bytes())["envelope"]
        assert (told["is_used"], told["stale"]) == (is_used, stale)
    assert status_of("report", out) == 0
    assert "Envelope STALE (prompt changed" in (out / "report.html").read_text()
    for change, stale in (({"prompt": "?"}, ["prompt"]), ({"temperature": 1.0}, ["workload"]), ({}, [])):
        workload(tmp_path, **change)
        assert status_of("report", tmp_path / "study") == 0
        assert json.loads((tmp_path / "study" / "envelope.json").read_bytes())["stale"] == stale
        assert ("STALE" in (tmp_path / "study" / "report.html").read_text()) == bool(stale)
    file.unlink()
    assert status_of("report", tmp_path / "study") == 0, "a study outlives its workload file"
    assert json.loads((tmp_path / "study" / "envelope.json").read_bytes())["stale"] is None


def test_none_that_is_good_enough_ends_with_5(stub: StubUpstream, tmp_path: Path) -> None:
    """The choice says so too: no row. Another threshold needs no question to be asked again; a place where the choice
    cannot be kept costs nothing of the study.
    """
    workload(tmp_path)
    assert envelope(stub.base_url, tmp_path, "--fps", "1", "--threshold", "0.9", "--no-controls") == 5
    kept = read_choice(tmp_path / "workload.envelope.json")
    assert kept is not None and kept["chosen"] == []
    again = ("--fps", "1", "--threshold", "0.5", "--no-controls", "--resume", "--keep")
    assert envelope(stub.base_url, tmp_path, *again, str(tmp_path / "nowhere" / "choice.json")) == 4
    assert envelope(stub.base_url, tmp_path, *again, str(tmp_path / "choice.json")) == 0
    kept = read_choice(tmp_path / "choice.json")
    assert kept is not None and len(kept["chosen"]) == 1


def test_a_model_that_guesses_is_found_out(stub: StubUpstream, tmp_path: Path) -> None:
    """All right in every envelope, and without picture and sound too: both controls fail, and so does the command."""
    workload(tmp_path, model="guesses")
    assert envelope(stub.base_url, tmp_path, "--fps", "1,2", "--threshold", "0.9") == 5
    study = json.loads((tmp_path / "study" / "envelope.json").read_bytes())
    assert [row["accuracy"]["share"] for row in study["rows"]] == [1.0, 1.0]
    assert {one["control"]: one["verdict"] for one in study["controls"]} == {"blackout": "FAIL", "muted": "FAIL"}


def test_a_study_that_was_cut_off_goes_on(stub: StubUpstream, tmp_path: Path) -> None:
    """What had run is not asked again; other options are refused."""
    options = StudyOptions(
        workload(tmp_path), stub.base_url, tmp_path / "study", {"fps": [1.0, 2.0]}, 0.5, warm_up=0, controls=False
    )

    def stop(name: str, number: int, total: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(options, on_point=stop)
    assert asked(stub) == CLIPS and not (tmp_path / "study" / "envelope.json").exists()
    words = ("--threshold", "0.5", "--no-controls")
    assert envelope(stub.base_url, tmp_path, "--fps", "1,2", *words) == 2
    assert envelope(stub.base_url, tmp_path, "--fps", "1,3", "--resume", *words) == 2
    assert envelope(stub.base_url, tmp_path, "--fps", "1,2", "--resume", *words) == 0
    assert asked(stub) == 2 * CLIPS
    study = json.loads((tmp_path / "study" / "envelope.json").read_bytes())
    assert study["is_complete"] and len(study["rows"]) == 2


def test_what_cannot_be_studied_is_refused_before_anything_is_sent(stub: StubUpstream, tmp_path: Path) -> None:
    """No labels, a threshold that is no share, too few lines, a word that is neither on nor off; no target is 4."""
    url = stub.base_url
    workload(tmp_path, labels="none.jsonl")
    assert envelope(url, tmp_path, "--fps", "1", "--threshold", "0.9") == 2
    workload(tmp_path)
    assert envelope(url, tmp_path, "--fps", "1", "--threshold", "90", out="b") == 2
    assert envelope(url, tmp_path, "--height", "2", "--threshold", "0.9", out="c") == 2
    assert envelope(url, tmp_path, "--audio", "loud", "--threshold", "0.9", out="d") == 2
    assert asked(stub) == 0
    assert envelope("http://127.0.0.1:9", tmp_path, "--fps", "1", "--threshold", "0.9", out="e") == 4
