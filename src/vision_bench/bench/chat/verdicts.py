"""A judge's verdicts in a run folder: judge.jsonl, a line each, written as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from vision_bench.bench.chat.scoring import Judged
from vision_bench.bench.rundir import LineFile, lines
from vision_bench.errors import InvalidRequest

VERDICTS = "judge.jsonl"


class Keep(Protocol):
    """Writes one verdict down."""

    def __call__(self, judged: Judged, is_right: bool, *, model: str) -> None: ...


def read_verdicts(folder: Path) -> dict[Judged, bool]:
    """Every verdict of a folder; of two about one fact the later.

    Raises:
        InvalidRequest: a line that is no verdict.
    """
    found: dict[Judged, bool] = {}
    for number, line in enumerate(lines(folder / VERDICTS), start=1):
        try:
            kept = json.loads(line)
            found[Judged(kept["ordinal"], kept["place"], kept["fact"])] = bool(kept["is_right"])
        except (ValueError, KeyError, TypeError) as problem:
            raise InvalidRequest(f"{folder / VERDICTS} line {number} is no verdict ({problem}); delete it") from problem
    return found


@contextmanager
def keeping(folder: Path) -> Iterator[Keep]:
    """Append verdicts to a folder.

    Raises:
        OperatorError: the disk took it no more; what was written before is whole.
    """
    file = LineFile(folder / VERDICTS)

    def keep(judged: Judged, is_right: bool, *, model: str) -> None:
        file.append(json.dumps({**judged._asdict(), "is_right": is_right, "model": model}).encode())

    try:
        yield keep
    finally:
        file.close()
