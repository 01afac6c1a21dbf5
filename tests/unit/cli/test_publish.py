"""``vision-bench publish``: what it ends with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vision_bench.cli.publish import command
from vision_bench.client import publish
from vision_bench.errors import BrokenStream, ConnectFailed, HttpFailure, UpstreamError


def run(film: Path, monkeypatch: pytest.MonkeyPatch, problem: UpstreamError, *, is_made: bool) -> Any:
    """The verb, with a gateway that fails before or behind the creation of the stream."""

    async def fail(_film: Path, *, on_stream: Callable[[str], None], **_: Any) -> None:
        if is_made:
            on_stream("s")
        raise problem

    monkeypatch.setattr(publish, "publish", fail)
    film.write_bytes(b"film")
    return CliRunner().invoke(command, [str(film)], standalone_mode=False)


@pytest.mark.parametrize(
    "problem", [HttpFailure(401, "a wrong key"), ConnectFailed("nobody there"), BrokenStream("no LIVE_ENABLED")]
)
def test_without_a_stream_nothing_could_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: UpstreamError
) -> None:
    """4, and the reason on stderr: a wrong key, no gateway, a gateway without streams."""
    done = run(tmp_path / "film.mp4", monkeypatch, problem, is_made=False)
    assert (done.return_value, done.stdout) == (4, "")
    assert str(problem) in done.stderr


def test_a_stream_that_breaks_off_is_another_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3: pictures may have come."""
    done = run(tmp_path / "film.mp4", monkeypatch, HttpFailure(404, "the stream is gone"), is_made=True)
    assert isinstance(done.exception, HttpFailure)
    assert done.exception.exit_code == 3
