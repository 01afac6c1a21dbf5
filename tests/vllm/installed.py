"""This package as vLLM's environment would have it installed, without touching that environment."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel and unpack it below ``folder``: on ``PYTHONPATH``, its entry points count as installed."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "packages")
    return folder / "packages"
