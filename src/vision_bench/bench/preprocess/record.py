"""What was seen of one clip that had to be preprocessed. Monotonic ns, as in every kind."""

from __future__ import annotations

from dataclasses import dataclass

from vision_bench.bench.record import Record


@dataclass(slots=True, kw_only=True)
class PreprocessRecord(Record):
    """One clip's way through the queue and a worker. What did not happen is None.

    Attributes:
        clip: which of the workload's clips.
        worker: which worker took it.
        start_ns: when a worker had come free for it; ``start_ns - dsp_ns`` was spent in the queue.
        work_ns: how long the preprocessor took, a duration by the worker's own clock.
        end_ns: when the worker's word of it was here.
    """

    clip: int | None = None
    worker: int | None = None
    start_ns: int | None = None
    work_ns: int | None = None
    end_ns: int | None = None
