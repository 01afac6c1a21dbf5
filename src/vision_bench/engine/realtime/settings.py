"""How a reference server is set up."""

from __future__ import annotations

from dataclasses import dataclass, field

from vision_bench.engine.realtime.late import MAX_AREA, SIDE_MULTIPLE, Deployment
from vision_bench.engine.realtime.protocol import Deadlines
from vision_bench.engine.realtime.timing import TimingSettings
from vision_bench.media.marks import has_room

CAPABILITIES = frozenset({"camera", "prompt"})


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """Everything ``create_realtime_engine`` needs."""

    served_model_names: tuple[str, ...] = ("lingbot-world",)
    """A request may name the first one, or none."""
    deployment: Deployment = field(default_factory=Deployment)
    timing: TimingSettings = field(default_factory=TimingSettings)
    capabilities: frozenset[str] = frozenset({"camera"})
    """What can be changed in mid-session; in 0.30 LingBot knows the camera alone."""
    pipeline_chunks: int = 3
    """From the chunk just received to the first one that an event sent then can change."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    api_key: str | None = None
    can_stream: bool = True
    """False: every session gets one error and a normal close, as from a model that makes no video."""
    truth_sessions: int = 1000
    """Sessions whose times are kept."""

    def __post_init__(self) -> None:
        unknown = sorted(self.capabilities - CAPABILITIES)
        if unknown:
            raise ValueError(f"capability {unknown[0]!r} does not exist; choose of {', '.join(sorted(CAPABILITIES))}.")
        if self.pipeline_chunks < 2:
            raise ValueError(f"pipeline_chunks is {self.pipeline_chunks}; 2 or more are possible.")
        width, height = self.deployment.width, self.deployment.height
        is_whole = width > 0 and height > 0 and not (width % SIDE_MULTIPLE or height % SIDE_MULTIPLE)
        if not is_whole or width * height > MAX_AREA or not has_room(width, height):
            raise ValueError(
                f"a picture of {width}x{height} cannot be served: sides are multiples of {SIDE_MULTIPLE}, the area at "
                f"most {MAX_AREA} pixels, and the marks need room (128x128 is enough)."
            )

    @property
    def model_name(self) -> str:
        """The name that requests are compared with."""
        return self.served_model_names[0]
