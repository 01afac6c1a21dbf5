"""Which Python a worker runs in, and how it finds this package there."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from vision_bench.errors import MissingTool

VARIABLE = "VISION_BENCH_STOCK_PYTHON"
NEEDED = ("transformers", "torch", "torchvision")

_START = """
import importlib.util, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "vision_bench", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules["vision_bench"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from vision_bench.bench.preprocess.worker import main
sys.exit(main())
"""
"""This package alone from where it lies here: a whole folder of packages on the path would put ours over theirs."""


def stock_python(environ: Mapping[str, str]) -> Path:
    """A Python that has the stock processor: the one that is named, this one, or that of the tests against vLLM.

    Raises:
        MissingTool: there is none; the message says how to make one.
    """
    if named := environ.get(VARIABLE):
        path = Path(named).expanduser()
        if not path.is_file():
            raise MissingTool(f"{VARIABLE} is {named}, which is not there; name a Python that has {', '.join(NEEDED)}")
        return path
    if all(importlib.util.find_spec(name) for name in NEEDED):
        return Path(sys.executable)
    root = cache_root(environ)
    complete = [stamp.parent for stamp in root.glob("vllm-*/.complete")]
    if not complete:
        raise MissingTool(
            f"the stock processor needs a Python with {', '.join(NEEDED)}; this one lacks them and {root} holds no "
            f"environment of vLLM. Make one (3 GB, three minutes) with `python tests/vllm/environment.py` in a clone "
            f'of the repository, name one in {VARIABLE}, or set arm = "ours" in the workload'
        )
    return max(complete, key=lambda folder: folder.stat().st_mtime) / "bin" / "python"


def cache_root(environ: Mapping[str, str]) -> Path:
    """Where tests/vllm/environment.py keeps what it makes."""
    if chosen := environ.get("VISION_BENCH_VLLM_DIR"):
        return Path(chosen).expanduser()
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vision-bench"


def worker_command(python: Path) -> list[str]:
    """How a worker is started."""
    package = Path(__file__).resolve().parents[2]
    return [str(python), "-c", _START, str(package)]


def worker_environ(environ: Mapping[str, str], threads: int) -> dict[str, str]:
    """What a worker finds in its environment: nothing of this Python's, no model hub, so many threads."""
    kept = {name: value for name, value in environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    alone = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | alone | {"OMP_NUM_THREADS": str(threads)}
