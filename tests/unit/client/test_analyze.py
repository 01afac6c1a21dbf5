"""client.analyze over a sender in place of a server: what is odd costs one line."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from vision_bench.answers.body import ClipBody
from vision_bench.client import analyze as subject
from vision_bench.client.analyze import analyze
from vision_bench.client.gateway import BatchLine
from vision_bench.client.results import ResultLine, ResultsFile, read_results
from vision_bench.errors import InvalidRequest, InvalidSettings

RESULT = {"scene": "a", "speech": "b", "on_screen_text": "c", "summary": "d"}


def body(message: object) -> Any:
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


GOOD = body({"content": json.dumps(RESULT)})


class Answers:
    """A sender whose answer to each item is told by its name."""

    def __init__(self, answer: Callable[[str], Any] = lambda name: GOOD) -> None:
        self.answer = answer
        self.names: list[str] = []

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, items: Sequence[tuple[str, Any]], request_id: str) -> AsyncGenerator[BatchLine, None]:
        for name, _ in items:
            self.names.append(name)
            yield BatchLine(name, 200, 5, self.answer(name), None)


@pytest.fixture(autouse=True)
def _plain_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clips here hold no video."""
    monkeypatch.setattr(subject, "build", lambda *_: ClipBody({"model": "qwen"}, True, ()))


def clips(folder: Path, *names: str | bytes) -> list[Path]:
    made = [folder / os.fsdecode(name) for name in names]
    for number, clip in enumerate(made):
        clip.parent.mkdir(exist_ok=True)
        clip.write_bytes(b"%d" % number)
    return made


def lines(out: Path) -> dict[str, ResultLine]:
    return {line.clip_id: line for line in read_results(out).lines}


@pytest.mark.parametrize(
    ("odd", "outcome"),
    [
        (body({"content": 5}), "no_answer"),
        (body("x"), "no_answer"),
        (body({"content": "a", "tool_calls": 5}), "no_answer"),
        (body({"content": [{"type": "text", "text": json.dumps(RESULT)}]}), "ok"),
        (body({"content": "[" * 100_000}), "invalid_json"),
        (body({"content": "[" * 2000 + "]" * 2000}), "invalid_json"),
        (GOOD | {"usage": {"completion_tokens": "many"}, "model": ["a"]}, "ok"),
        ([], "no_answer"),
    ],
)
async def test_an_odd_answer_is_that_clips_outcome(tmp_path: Path, odd: Any, outcome: str) -> None:
    """The clips beside it keep their answers, and every line can be read back."""
    named = clips(tmp_path, "a.mp4", "b.mp4", "c.mp4")
    sender = Answers(lambda name: odd if name == "b" else GOOD)
    await analyze(named, out=tmp_path / "r.ndjson", sender=sender)
    found = lines(tmp_path / "r.ndjson")
    assert {name: line.outcome for name, line in found.items()} == {"a": "ok", "b": outcome, "c": "ok"}
    assert read_results(tmp_path / "r.ndjson").unreadable == 0


async def test_a_failure_nobody_foresaw_is_that_clips_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In making a body, in the sending, in judging: the others go on, and the log has the traceback."""
    named = clips(tmp_path, "a.mp4", "b.mp4", "c.mp4")

    def build(data: bytes, name: str, *_: object) -> ClipBody:
        return ClipBody({}, True, ()) if name != "a.mp4" else 1 / 0  # type: ignore[return-value]

    monkeypatch.setattr(subject, "build", build)
    monkeypatch.setattr("vision_bench.client.lines.validate", lambda *_: 1 / 0)
    sender = Answers(lambda name: GOOD if name == "b" else {}["gone"])
    summary = await analyze(named, out=tmp_path / "r.ndjson", sender=sender, batch_size=1)
    found = lines(tmp_path / "r.ndjson")
    assert {name: line.outcome for name, line in found.items()} == dict.fromkeys("abc", "error")
    assert "ZeroDivisionError" in (found["a"].error or "") and "KeyError" in (found["c"].error or "")
    assert summary.failed == 3 and caplog.text.count("Traceback") == 3


async def test_two_runs_on_one_file_lose_nothing(tmp_path: Path) -> None:
    """The second is refused before it sends anything."""
    out = tmp_path / "r.ndjson"
    second = Answers()
    with ResultsFile(out), pytest.raises(InvalidRequest, match=r"another run is writing .*r\.ndjson"):
        await analyze(clips(tmp_path, "a.mp4"), out=out, sender=second)
    assert second.names == []
    await analyze(clips(tmp_path, "a.mp4"), out=out, sender=second)
    assert lines(out)["a"].is_ok


async def test_results_that_cannot_be_written_end_the_run_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error of ours, not a group of them, and no line that says the clip failed."""

    def full(self: ResultsFile, line: ResultLine) -> None:
        raise InvalidSettings("no space left; give another --out")

    monkeypatch.setattr(ResultsFile, "append", full)
    with pytest.raises(InvalidSettings, match="no space left"):
        await analyze(clips(tmp_path, "a.mp4", "b.mp4"), out=tmp_path / "r.ndjson", sender=Answers(), batch_size=1)


async def test_names_on_the_wire_are_text_and_differ(tmp_path: Path) -> None:
    r"""Bytes that are no text appear as escapes; a name that looks like the escape is told apart."""
    names = [b"b\xffd.mp4", b"b\\udcffd.mp4", "one/x.mp4", "two/x.mp4", "a\nb.mp4", "가.mp4"]
    sender = Answers()
    await analyze(clips(tmp_path, *names), out=tmp_path / "r.ndjson", sender=sender)
    assert len(set(sender.names)) == 6 and all(name.isprintable() for name in sender.names)
    assert {"가", r"a\nb"} <= set(sender.names)
    data = (tmp_path / "r.ndjson").read_bytes()
    assert b"\\ud" not in data.replace(b"\\\\udcff", b"") and len(read_results(tmp_path / "r.ndjson").lines) == 6
    assert lines(tmp_path / "r.ndjson")["b?d"].clip.endswith("/b?d.mp4")


async def test_a_pipe_among_the_clips_is_a_line(tmp_path: Path) -> None:
    """It is not waited for."""
    os.mkfifo(tmp_path / "p.mp4")
    async with asyncio.timeout(10):
        await analyze([tmp_path / "p.mp4"], out=tmp_path / "r.ndjson", sender=Answers())
    line = lines(tmp_path / "r.ndjson")["p"]
    assert line.outcome == "invalid_media" and "no regular file" in (line.error or "")
