"""Environments of their own for programs that are measured beside ours: built once, kept outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

BUILD_SECONDS = 1800


class NotAvailable(Exception):
    """The program could not be installed; the message says why."""


def ensure(name: str, packages: Sequence[str], say: Callable[[str], None]) -> Path:
    """The environment called ``name`` with what pip is told to install; its ``bin`` folder.

    One that is complete is taken as it is: whoever changes ``packages`` gives another name.

    Raises:
        NotAvailable: pip could not install it.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vision-bench" / name
    programs = folder / "bin"
    if (folder / "complete").exists():
        return programs
    say(f"installing {' '.join(packages)} into {folder} (once)")
    shutil.rmtree(folder, ignore_errors=True)
    commands = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(programs / "python"), "-m", "pip", "install", "--quiet", *packages],
    )
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        except subprocess.TimeoutExpired as problem:
            raise NotAvailable(f"{command!r} took longer than {BUILD_SECONDS} s") from problem
        if done.returncode:
            raise NotAvailable(f"{command!r} failed: {done.stderr.strip()[-500:]}")
    (folder / "complete").touch()
    return programs
