"""``vision-bench run`` for generated video: one verb, its own options, its own table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from tests.unit.bench.realtime.made_steps import session, step_summary

from vision_bench.bench.run import RunOptions
from vision_bench.cli.run import command
from vision_bench.errors import InvalidRequest
from vision_bench.report.run_table import print_run


def asked(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> RunOptions:
    """The options that the words come to."""
    seen: list[RunOptions] = []

    def fake(options: RunOptions, **_: object) -> Any:
        seen.append(options)
        return made_summary()

    monkeypatch.setattr("vision_bench.bench.run.run_to_end", fake)
    monkeypatch.setattr("vision_bench.report.run_page.write_run_page", lambda *_, **__: None)
    (folder / "w.json").write_text("{}")
    command.main(["--target", "ws://h", "--out", str(folder / "run"), *words], standalone_mode=False)
    return seen[0]


def made_summary() -> dict[str, Any]:
    failed = session(1, outcome="late_error", detail="400")
    shown = {"step": 2, "name": "one lane", "load": "closed", "arrivals": None, "media": "9 chunks", "model": "m"}
    return {
        "kind": "realtime",
        "workload": {"name": "[w]", "fingerprint": "f00"},
        "warnings": ["what is sent after chunk 8 can start no more"],
        "sweep": None,
        "steps": [shown | {"watched_at_fps": 16.0} | step_summary(session(), failed)],
    }


def test_the_published_file_is_named_by_an_option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--workload` in the argument's place; flags are handed down, 0 and empty text as given, the seed to both."""
    file = str(tmp_path / "w.json")
    words = ("--num-chunks", "0", "--prompt", "", "--fps", "12.5", "--seed", "0", "--save-video")
    options = asked(monkeypatch, tmp_path, "--workload", file, *words)
    given = {name: value for name, value in options.own.items() if value is not None}
    assert given == {"num_chunks": 0, "prompt": "", "fps": 12.5, "save_video": True}
    assert (options.workload, options.given_seed, options.plan.seed) == (Path(file), 0, 0)
    assert asked(monkeypatch, tmp_path, file).given_seed is None


def test_one_workload_is_named_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither, or both, is a usage error."""
    file = str(tmp_path / "w.json")
    for words in ((), (file, "--workload", file)):
        with pytest.raises(click.UsageError, match="one workload file"):
            asked(monkeypatch, tmp_path, *words)


def test_an_option_of_sessions_is_refused_by_name(tmp_path: Path) -> None:
    """A chat workload has no chunks."""
    file = tmp_path / "w.toml"
    file.write_text('name = "w"\nkind = "chat"\n')
    words = [str(file), "--target", "http://h", "--out", str(tmp_path / "run"), "--rate", "1", "--num-chunks", "3"]
    with pytest.raises(InvalidRequest, match="--num-chunks means nothing to a workload of kind 'chat'"):
        command.main(words, standalone_mode=False)


def test_the_table_of_sessions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Means with their counts, failures by name, notes; nothing is read as markup."""
    print_run(made_summary(), tmp_path)
    said = capsys.readouterr().out
    for words in ("[w]", "1 of 2", "700 to 700 (4)", "1 x late_error: 400", "note: what is sent after chunk 8", "16.0"):
        assert words in said
