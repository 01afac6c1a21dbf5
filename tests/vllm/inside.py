"""Our code run with vLLM's Python and packages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.vllm.environment import VllmEnvironment

SOURCE = Path(__file__).resolve().parents[2] / "src"


def run(
    environment: VllmEnvironment, code: str | Path, *arguments: str | Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a script, or what is given after ``-c``, and wait for it; ``more`` are variables of its environment."""
    variables = {
        **environment.variables(os.environ),
        "PYTHONPATH": str(SOURCE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "error:Numba is not installed",
        **more,
    }
    script = [code] if isinstance(code, Path) else ["-c", code]
    command = [environment.python, *script, *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)
