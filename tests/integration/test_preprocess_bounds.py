"""The compiled loops compute their own addresses; a stray one would be somebody else's memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
def test_nothing_is_touched_before_or_behind_the_arrays() -> None:
    """Frames and output against pages that kill the process: one filter, both, none, a strip, a single row."""
    variables = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")}
    command = [sys.executable, HERE / "guarded_memory.py"]
    found = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=240, check=False)
    assert (found.returncode, found.stdout.strip()) == (0, "18"), found.stderr[-2000:]


def test_the_guard_bites() -> None:
    """Reading one byte behind guarded memory ends a process, so that the test above can fail."""
    if os.name != "posix":
        pytest.skip("needs mprotect")
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "import numpy as np; from guarded_memory import Guarded\n"
        "array = Guarded(100).array((100,), np.uint8, at_the_end=True)\n"
        "print(int(np.lib.stride_tricks.as_strided(array, (101,), (1,))[100]))"
    )
    variables = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")}
    command = [sys.executable, "-c", code, HERE]
    found = subprocess.run(command, env=variables, capture_output=True, timeout=60, check=False)
    assert found.returncode < 0
    assert found.stdout == b""
