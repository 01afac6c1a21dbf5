"""A result line for tests of the report."""

from __future__ import annotations

from pathlib import Path

from vision_bench.client.results import ResultLine, ResultsFile

GOOD = ResultLine(
    clip="data/clips/baseball/baseball/0001_0600-0606.mp4",
    clip_id="0001_0600-0606",
    sha256="00",
    model="qwen",
    fps=2.0,
    use_audio_in_video=True,
    status=200,
    outcome="ok",
    result={"scene": "야구장", "speech": "해설", "on_screen_text": "SK 3", "summary": "투수가 던진다."},
    error=None,
    raw=None,
    warnings=(),
    elapsed_ms=700,
    usage={"prompt_tokens": 900, "completion_tokens": 40},
    request_id="f00d-1-0",
)


def write_results(path: Path, lines: list[ResultLine]) -> None:
    """A results file as an analysis leaves it."""
    with ResultsFile(path) as file:
        for line in lines:
            file.append(line)
