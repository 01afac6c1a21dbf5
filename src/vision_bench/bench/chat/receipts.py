"""What the receipts of a step's answers come to: every stage from the camera to the checked answer, with its clocks.

The gateway's readings are in a record's receipt; the client's are the record's own stamps. Both are joined here by
``live.joining``, from records alone, so that ``vision-bench report`` makes the same table again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from vision_bench.bench.chat.formulas import first_ns
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.samples import Samples
from vision_bench.live.clocks import Offset, joined
from vision_bench.live.joining import ServerClock, join
from vision_bench.live.receipt import STAGES, TOTALS, Place, Receipt, Stage, StageTime, read_receipt, stage_times

Json = dict[str, Any]

CLIENT_CLOCK = "run"
"""Names this program's clock beside the gateway's and the camera's."""

_SOURCES: dict[Place, str] = {
    "publisher": "receipt: the camera's clock",
    "server": "receipt: the gateway's clock",
    "upstream": "receipt: told by the upstream",
    "client": "client",
    "between": "across clocks",
}


class Receipts:
    """Add the good answers of one step in the order of their ends, then ``summary``."""

    def __init__(self) -> None:
        self._server = ServerClock(CLIENT_CLOCK)
        self._samples = Samples()
        self._count = 0
        self._problems: dict[str, Counter[str]] = {}
        self._clocks: dict[str, dict[str, None]] = {}
        self._offsets: dict[str, Offset] = {}
        self._newest: set[tuple[str, int]] = set()
        self._cache: Counter[str] = Counter()

    def add(self, record: ChatRecord) -> None:
        """Take one good answer in; one without a receipt that can be read counts for nothing here."""
        receipt = joined_receipt(record, self._server)
        if receipt is None:
            return
        self._count += 1
        for stage, time in zip((*STAGES, *TOTALS), stage_times(receipt, (*STAGES, *TOTALS)), strict=True):
            self._add_stage(stage, time, receipt)
        self._samples.put("frames", float(len(receipt.frames)))
        self._samples.put("payload_bytes", receipt.payload_bytes)
        self._samples.put("visual_tokens", receipt.visual_tokens)
        if receipt.frames:
            self._samples.put("age_ms", receipt.frames[-1].age_ms)
        # Records of before receipts told the newest of a stream have the newest chosen alone.
        self._newest.update((seen.stream_id, seen.frame_index) for seen in receipt.newest or receipt.frames[-1:])
        if receipt.cache.cache_hit is not None:
            self._cache["told"] += 1
            self._cache["hits"] += receipt.cache.cache_hit
            self._cache["cached_input_tokens"] += receipt.cache.cached_input_tokens or 0

    def _add_stage(self, stage: Stage, time: StageTime, receipt: Receipt) -> None:
        name = stage.name
        self._clocks.setdefault(name, {}).update(dict.fromkeys(time.clocks))
        if time.problem is not None:
            self._problems.setdefault(name, Counter())[time.problem] += 1
            return
        if time.ms is not None:
            self._samples.put(f"ms/{name}", time.ms)
            return
        self._samples.put(f"low/{name}", time.low_ms)
        self._samples.put(f"high/{name}", time.high_ms)
        behind, ahead = time.clocks
        offset = joined(behind, ahead, receipt.offsets)
        if offset is not None:
            self._samples.put(f"bound/{name}", offset.bound_ns / 1e6)
            known = self._offsets.get(name)
            if known is None or offset.bound_ns < known.bound_ns:
                self._offsets[name] = offset

    def summary(self) -> Json | None:
        """As the step has it in summary.json; None where no answer had a receipt."""
        if not self._count:
            return None
        told = self._cache["told"]
        return {
            "answers": self._count,
            "stages": [self._row(stage) for stage in STAGES],
            "totals": [self._row(stage) for stage in TOTALS],
            "frames": {
                "per_answer": self._samples.column("frames"),
                "age_ms": self._samples.column("age_ms"),
                "distinct_newest": len(self._newest),
            },
            "payload_bytes": self._column("payload_bytes"),
            "visual_tokens": self._column("visual_tokens"),
            "cache": {
                "told": told,
                "hits": self._cache["hits"] if told else None,
                "cached_input_tokens": self._cache["cached_input_tokens"] if told else None,
            },
        }

    def _row(self, stage: Stage) -> Json:
        name, problems = stage.name, self._problems.get(stage.name, Counter())
        offset = self._offsets.get(name)
        return {
            "stage": name,
            "source": "unknown" if problems.total() == self._count else _SOURCES[stage.place],
            "clocks": list(self._clocks.get(name, {})),
            "ms": self._column(f"ms/{name}"),
            "low_ms": self._column(f"low/{name}"),
            "high_ms": self._column(f"high/{name}"),
            "offset": None
            if offset is None
            else {
                "behind": offset.behind,
                "ahead": offset.ahead,
                "offset_ms": round(offset.offset_ns / 1e6, 6),
                "bound_ms": self._samples.column(f"bound/{name}"),
            },
            "problems": dict(sorted(problems.items())),
        }

    def _column(self, name: str) -> Json | None:
        """None, not a column of nothing, where nobody told it."""
        return self._samples.column(name) if len(self._samples.of(name)) else None


def joined_receipt(record: ChatRecord, server: ServerClock) -> Receipt | None:
    """The receipt of a record with the record's own stamps; None where there is none that can be read."""
    if record.receipt is None or record.hdr_ns is None or record.end_ns is None:
        return None
    try:
        receipt = read_receipt(record.receipt)
    except ValueError:
        return None
    ours = {"decided": record.dec_ns, "read": record.end_ns, "parsed": record.par_ns, "validated": record.val_ns}
    return join(
        receipt,
        {name: at_ns for name, at_ns in ours.items() if at_ns is not None},
        server,
        sent_ns=record.hdr_ns,
        first_output_ns=first_ns(record),
        now_ns=record.end_ns,
    )
