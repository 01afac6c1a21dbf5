"""cli.run: exit status, numbers joined by commas, the line of progress, the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from vision_bench.bench.run import RunOptions
from vision_bench.bench.session import Status
from vision_bench.cli.run import command
from vision_bench.cli.run_progress import status_line
from vision_bench.errors import ConnectFailed

COLUMN = {"count": 40, "p50": 1.0, "p95": None, "p99": None}


def summary(ok: int, failed: int) -> dict[str, Any]:
    step = {
        "name": "rate 5",
        "arrivals": "poisson",
        "duration_seconds": 8.0,
        "requests": {"due": ok + failed, "ok": ok, "failed": failed},
        "achieved_rate": None,
        "goodput": 5.0,
        "verdict": "STABLE",
        "verdict_reason": "5.0/s achieved",
        "model": "qwen",
        "media": "none",
        "region": None,
    }
    columns = ("scheduled_ttft_ms", "response_ms", "icl_ms", "tpot_ms")
    return {
        "kind": "chat",
        "workload": {"name": "[w]", "fingerprint": "f00"},
        "steps": [step | dict.fromkeys(columns, COLUMN) | {"tpot_ms": {"count": 0}}],
    }


def execute(monkeypatch: pytest.MonkeyPatch, folder: Path, result: Any, *words: str) -> tuple[Any, list[RunOptions]]:
    seen: list[RunOptions] = []

    def fake(options: RunOptions, *, on_status: object, calibrate: object) -> Any:
        seen.append(options)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr("vision_bench.bench.run.run_to_end", fake)
    monkeypatch.setattr("vision_bench.report.run_page.write_run_page", lambda *_, **__: None)
    file = folder / "w.toml"
    file.write_text('kind = "chat"')
    given = [str(file), "--target", "http://h/chat", "--out", str(folder / "run"), "--rate", "1,2.5", *words]
    return command.main(given, standalone_mode=False), seen


@pytest.mark.parametrize(
    ("counts", "words", "status"),
    [((40, 0), (), 0), ((20, 20), (), 3), ((20, 20), ("--allow-failures",), 0), ((0, 40), ("--allow-failures",), 4)],
)
def test_the_status_says_how_it_went(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, counts: tuple[int, int], words: tuple[str, ...], status: int
) -> None:
    """0 all succeeded, 3 some failed unless that is allowed, 4 none succeeded."""
    assert execute(monkeypatch, tmp_path, summary(*counts), *words)[0] == status


def test_a_target_that_does_not_answer_is_nothing_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """4, for no request was sent."""
    assert execute(monkeypatch, tmp_path, ConnectFailed("nobody"))[0] == 4


def test_options_are_handed_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lists, defaults and the process of arrivals."""
    _, (options,) = execute(monkeypatch, tmp_path, summary(40, 0), "--concurrency", "4", "--seed", "3")
    plan = options.plan
    assert (list(plan.rates), list(plan.concurrency), plan.arrivals.label, plan.seed) == ([1.0, 2.5], [4], "poisson", 3)
    assert (plan.duration_seconds, plan.max_requests, options.warm_up, options.is_resumed) == (None, None, 0, False)


def test_a_list_of_other_things_than_numbers_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It names the option."""
    with pytest.raises(click.UsageError, match="--concurrency"):
        execute(monkeypatch, tmp_path, summary(1, 0), "--concurrency", "1,x")


def test_the_table_says_what_it_cannot_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A withheld percentile is a dash, no value is n/a; a name in brackets is no markup; --json is strict."""
    execute(monkeypatch, tmp_path, summary(40, 0))
    shown = capsys.readouterr().out
    assert "1.0 / - / -" in shown and "n/a (0 samples)" in shown and "[w]" in shown
    execute(monkeypatch, tmp_path, summary(40, 0), "--json")
    assert json.loads(capsys.readouterr().out)["workload"]["name"] == "[w]"


def test_progress_in_one_line() -> None:
    """What is offered and achieved, in flight, latencies so far, failures by class, time left."""
    status = Status("rate 5", 2, 3, seconds=10, window_seconds=30, offered_rate=5, sent=50, ok=40, in_flight=3)
    status.failures, status.headline = {"http_error": 7}, {"TTFT": 123.4}
    assert status_line(status) == (
        "[2/3] rate 5  offered 5.0/s  achieved 4.0/s  in flight 3  sent 50  ok 40  TTFT 123 ms  http_error 7  20 s left"
    )
    assert status_line(Status("concurrency 4", 1, 1)) == "[1/1] concurrency 4  in flight 0  sent 0  ok 0"
