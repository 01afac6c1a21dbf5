"""Which numbers a step of chat requests has, who is in each, and what a step was meant to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vision_bench.bench.accuracy import Mark
from vision_bench.bench.cameras import CameraLoad
from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.slo import Limit
from vision_bench.bench.requests import Window

Json = dict[str, Any]
Number = Callable[[ChatRecord], float | None]

SERVICE: dict[str, Number] = {
    "ttft_ms": formulas.ttft_ms,
    "first_text_ms": formulas.first_text_ms,
    "ttfb_ms": formulas.ttfb_ms,
    "tpot_ms": formulas.tpot_ms,
    "ntpot_ms": formulas.ntpot_ms,
    "max_icl_ms": formulas.max_gap_ms,
    "stall_ratio": formulas.stall_ratio,
    "e2e_ms": formulas.e2e_ms,
    "full_response_ms": formulas.full_response_ms,
    "parsed_ms": formulas.parsed_ms,
    "validated_ms": formulas.validated_ms,
    "workflow_ms": formulas.workflow_ms,
}
"""Over good answers."""

SCHEDULED: dict[str, Number] = {
    "scheduled_ttft_ms": formulas.scheduled_ttft_ms,
    "response_ms": formulas.response_ms,
}
"""Over everything that was due: failed and unsent count as infinite, still running as at least their age."""

CLIENT: dict[str, Number] = {
    "lag_ms": formulas.lag_ms,
    "wait_ms": formulas.wait_ms,
    "connect_ms": formulas.connect_ms,
    "upload_ms": formulas.upload_ms,
}
"""Over everything that was sent."""

NUMBER_OF: dict[str, Number] = SERVICE | SCHEDULED | CLIENT


class ScoredAnswer(Protocol):
    """One labelled answer of a record."""

    @property
    def item(self) -> str: ...

    @property
    def marks(self) -> Sequence[Mark]: ...

    @property
    def is_correct(self) -> bool: ...


class Scores(Protocol):
    """Gives the labelled answers of a record (``chat.scoring``)."""

    def of_record(self, record: ChatRecord, /) -> Iterable[ScoredAnswer]: ...


class ReceiptTable(Protocol):
    """Puts the receipts of good answers together (``chat.receipts``)."""

    def add(self, record: ChatRecord, /) -> None: ...

    def summary(self) -> Json | None: ...


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step of chat requests was meant to be, beside its window.

    Attributes:
        streams: events were asked for; without, a failed request has no infinite TTFT either.
        is_cold: the workload says that caches are cold.
        fixed_tokens: every answer was asked to be this long.
        preprocess_ms: a column: what media cost before the model, by pairs; None where they were not measured.
        cameras: the step's load, where that is live cameras.
        server: what the server counted in the step, as ``stages.told_between`` has it; empty where it does not tell.
        system_tokens: of the system prompt, in every prompt's count; None where there is none, or nobody tells.
        scoring: holds answers against labels; None without labels.
        receipts: takes those of this step in; None where the workload is about no live stream.
    """

    window: Window
    streams: bool
    is_cold: bool = False
    fixed_tokens: int | None = None
    slo: Sequence[Limit] = ()
    server: Mapping[str, Json] = field(default_factory=dict)
    preprocess_ms: Json | None = None
    cameras: CameraLoad | None = None
    system_tokens: int | None = None
    scoring: Scores | None = None
    receipts: ReceiptTable | None = None
