"""An environment of its own for LiteLLM's proxy, outside the tree, built once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

REQUIREMENT = "litellm[proxy]"
BUILD_SECONDS = 900


class NotAvailable(Exception):
    """LiteLLM could not be installed; the message says why."""


def litellm_program(say: Callable[[str], None]) -> Path:
    """The ``litellm`` command, installed first if it is not there yet.

    Raises:
        NotAvailable: pip could not install it.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vision-bench" / "litellm"
    program = cache / "bin" / "litellm"
    if (cache / "complete").exists():
        return program
    say(f"installing {REQUIREMENT} into {cache} (once)")
    shutil.rmtree(cache, ignore_errors=True)
    commands = (
        [sys.executable, "-m", "venv", str(cache)],
        [str(cache / "bin" / "python"), "-m", "pip", "install", "--quiet", REQUIREMENT],
    )
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        except subprocess.TimeoutExpired as problem:
            raise NotAvailable(f"{command!r} took longer than {BUILD_SECONDS} s") from problem
        if done.returncode:
            raise NotAvailable(f"{command!r} failed: {done.stderr.strip()[-500:]}")
    (cache / "complete").touch()
    return program
