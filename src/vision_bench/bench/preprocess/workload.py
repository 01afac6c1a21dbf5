"""What is asked: a preprocess workload file, checked. docs/workloads.md has its keys."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import msgspec

from vision_bench.bench.workload import Common, WorkloadFile, fingerprint, require
from vision_bench.errors import InvalidRequest
from vision_bench.preprocess.geometry import Size
from vision_bench.preprocess.spec import VideoSpec

Json = dict[str, Any]
Arm = Literal["stock", "ours"]

MAX_CLIP_BYTES = 2 << 30


class PreprocessWorkload(Common, frozen=True, kw_only=True):
    """A preprocess workload, as its file says it.

    Attributes:
        frames, width, height: of each clip. What is in the pictures does not matter to the time.
        spec: the checkpoint's settings: their file or folder, relative to the workload file, or a table of them.
        arm: whose preprocessor works: the stock one of transformers, ours, or both, each step once with either.
        workers: how many processes take from the queue; each step runs once for each number.
        threads: how many threads a worker may use for one clip.
        clips: how many different clips are sent in turn.
    """

    frames: int
    width: int
    height: int
    spec: str | dict[str, Any]
    arm: Literal["ours", "stock", "both"]
    workers: list[int] = msgspec.field(default_factory=lambda: [1])
    threads: int = 1
    clips: int = 2

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        require(self.kind == "preprocess", f"kind is {self.kind!r}, not 'preprocess'")
        for name in ("frames", "width", "height", "threads", "clips"):
            value = getattr(self, name)
            require(value >= 1, f"{name} is {value}; give 1 or more")
        require(bool(self.workers), "workers is empty; give the numbers of workers to try, such as [1, 2]")
        require(min(self.workers) >= 1, f"workers is {self.workers}; each number must be 1 or more")
        require(len(set(self.workers)) == len(self.workers), f"workers is {self.workers}; name each number once")
        size_bytes = self.frames * self.width * self.height * 3
        require(
            size_bytes <= MAX_CLIP_BYTES,
            f"{self.frames} frames of {self.width}x{self.height} are {size_bytes} bytes; {MAX_CLIP_BYTES} is the most",
        )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Whose preprocessors take part, in the order in which they run."""
        return ("stock", "ours") if self.arm == "both" else (self.arm,)

    @property
    def media_shape(self) -> str:
        """The clip in a few words, for a reader of a percentile."""
        return f"{self.frames} frames of {self.width}x{self.height}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload ready to run.

    Attributes:
        fingerprint: of the workload and of the settings that it names.
        files: name to SHA-256 of the settings' content, where they were read from a file.
    """

    workload: PreprocessWorkload
    spec: VideoSpec
    fingerprint: str
    files: dict[str, str]

    @property
    def variants(self) -> list[Json]:
        """What each step of the load runs under, in turn."""
        return [{"arm": arm, "workers": count} for count in self.workload.workers for arm in self.workload.arms]


def prepare(file: WorkloadFile) -> Prepared:
    """Read and check a workload file and the settings it names.

    Raises:
        InvalidRequest: a key is wrong, the settings are, or the clip is none that the processor takes.
        InvalidMedia: a clip that the processor refuses, such as one that is too short for it.
    """
    workload = file.checked(PreprocessWorkload)
    files: dict[str, str] = {}
    if isinstance(workload.spec, str):
        path = file.resolve(workload.spec)
        if not path.exists():
            raise InvalidRequest(f"{file.path}: spec names {path}, which is not there; give a checkpoint's folder")
        spec = VideoSpec.from_config(path)
        # Of what was read, not of the file: a checkpoint's folder spreads it over several.
        content = json.dumps(asdict(spec), sort_keys=True)
        files[path.name] = hashlib.sha256(content.encode()).hexdigest()
    else:
        spec = VideoSpec.from_config(workload.spec)
    spec.grid(workload.frames, Size(workload.height, workload.width))
    return Prepared(workload, spec, fingerprint(workload, files), files)
