"""Versions, host, GPU, git revision: what a repeat of a run needs to know. Nothing here names a user or a path."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("vision-bench", "httptools", "msgspec", "uvloop", "av", "numpy")
_GPU_QUERY = ["--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
_TOOL_SECONDS = 5


def describe() -> dict[str, Any]:
    """The machine as it is now. What cannot be learnt is None."""
    return {
        "packages": {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "gpus": gpus(),
        "git_revision": git_revision(Path(__file__).parent),
        "switch_interval_seconds": sys.getswitchinterval(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def gpus() -> list[str] | None:
    """Name, driver and memory of each NVIDIA GPU of this machine; None where its tool is not there."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        done = subprocess.run([tool, *_GPU_QUERY], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def git_revision(folder: Path) -> str | None:
    """The commit that is checked out around ``folder``, with ``+`` behind it where tracked files were changed."""
    tool = shutil.which("git")
    if tool is None:
        return None

    def ask(*words: str) -> str:
        command = [tool, "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True).stdout.strip()

    try:
        revision = ask("rev-parse", "HEAD")
        return revision + ("+" if ask("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None
