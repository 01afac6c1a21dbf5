"""What every kind of benchmark keeps of one request: when it was due, when it left, how it ended. Monotonic ns.

A kind adds its own stamps in a subclass. A record is filled in while the request runs, so that whatever ends it, a
cancelled one included, what was seen until then is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
RUNNING = "running"
"""Outcome: not finished when the step ended. Its latency is at least its age, ``stop_ns - due_ns``."""
UNSENT = "unsent"
"""Outcome: due, and never sent, because the client could not."""
DROPPED = "dropped"
"""Outcome of a live camera's frame that its drop policy let go: nobody was free, or a newer one was there."""
HARNESS_ERROR = "harness_error"
"""Outcome: this program failed, not the server."""


@dataclass(slots=True, kw_only=True)
class Record:
    """One arrival.

    Attributes:
        step: which step of the run, as numbered in ``steps.jsonl``.
        index: place in its step, from 0, in the order in which requests were due.
        ordinal: place in the whole run; it decides what is sent.
        due_ns: when the schedule wanted it sent; in a closed loop, when its lane came free.
        dsp_ns: when the driver turned to it. ``dsp_ns - due_ns`` is the harness's own lag.
        stop_ns: when the driver let go of it.
        outcome: ``ok``, or the one word that counts this failure.
        detail: what a person may want to read about a failure.
        camera: whose frame it is, of a load of live cameras; its ``due_ns`` is when the frame was there.
    """

    step: int
    index: int
    ordinal: int
    due_ns: int
    dsp_ns: int | None = None
    stop_ns: int | None = None
    outcome: str | None = None
    detail: str | None = None
    camera: int | None = None

    def end(self, outcome: str, detail: str | None = None) -> None:
        """Set how it ended."""
        self.outcome, self.detail = outcome, detail
