"""What a step's answers have in them, added up one by one: counts, and values by name. The rest is in ``requests``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from vision_bench.bench.accuracy import AccuracyTally
from vision_bench.bench.chat import formulas
from vision_bench.bench.chat.numbers import CLIENT, NUMBER_OF, SERVICE, StepContext
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.slo import is_good
from vision_bench.bench.chat.stages import STAGES
from vision_bench.bench.freshness import Frame, Freshness
from vision_bench.bench.record import OK, RUNNING
from vision_bench.bench.requests import LAG
from vision_bench.bench.samples import Samples

SPLIT_NUMBERS = ("ttft_ms", "e2e_ms")
"""What first and repeated bodies, cold and warm threads are told apart by."""


@dataclass
class Counted:
    """What the answers of one step have in them.

    Attributes:
        samples: where values go, by name.
        good: answered, not invalid, right where there are labels, and within every limit.
        checked, valid: answers held against a schema, and those that keep to it.
        off_length: answers that are not as long as every answer was asked to be.
        cached_told, cached_requests, cached_tokens: answers that tell cached tokens, that had some, and how many.
        token_ends: when an answer ended, and its tokens.
        freshness: of answers about live cameras; None where there are none.
        accuracy: labelled answers, those that never came among them.
    """

    context: StepContext
    samples: Samples
    statuses: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    good: int = 0
    valid: int = 0
    checked: int = 0
    repeats: int = 0
    off_length: int = 0
    connections: int = 0
    cached_requests: int = 0
    cached_told: int = 0
    cached_tokens: int = 0
    token_ends: list[tuple[int, int]] = field(default_factory=list)
    accuracy: AccuracyTally = field(default_factory=AccuracyTally)
    freshness: Freshness | None = None

    def __post_init__(self) -> None:
        if self.context.cameras is not None:
            self.freshness = Freshness(self.context.cameras)

    def add(self, record: ChatRecord) -> None:
        """Take one record in."""
        if record.status is not None:
            self.statuses[str(record.status)] += 1
        if self.freshness is not None:
            start_ns = self.context.window.start_ns
            usable_ns = None if record.val_ns is None else record.val_ns - start_ns
            frame = Frame(record.camera or 0, record.due_ns - start_ns, usable_ns)
            self.freshness.add(frame, record.outcome or RUNNING)
        self.repeats += record.is_repeat
        self.connections += bool(record.is_new_connection)
        for name, number in CLIENT.items():
            if name != LAG:  # every kind has that one
                self.samples.put(name, number(record))
        is_correct = self._score(record)
        if record.outcome == OK:
            self._add_good(record)
            self.good += is_correct and is_good(record, self.context.slo)

    def _score(self, record: ChatRecord) -> bool:
        """Take its labelled answers in; whether all of them are right, where there are any."""
        scored = [] if self.context.scoring is None else list(self.context.scoring.of_record(record))
        for one in scored:
            self.accuracy.add(one.item, one.marks)
        return all(one.is_correct for one in scored)

    def _add_good(self, record: ChatRecord) -> None:
        for name, number in SERVICE.items():
            self.samples.put(name, number(record))
        for name, values in (("icl_ms", formulas.gaps_ms(record)), ("itl_ms", formulas.itl_ms(record))):
            self.samples.put_all(name, values)
        for name, value in record.server_ms.items():
            self.samples.put(f"server/{name}", value)
        for stage in STAGES:
            if stage.of is not None:
                self.samples.put(f"stage/{stage.name}", stage.of(record))
        if self.context.receipts is not None:
            self.context.receipts.add(record)
        self.finish_reasons[record.finish_reason or "not told"] += 1
        self.checked += record.is_valid is not None
        self.valid += record.is_valid is True
        for kind in ("prompt_tokens", "completion_tokens"):
            self.samples.put(kind, getattr(record, kind))
        for kind, count in (record.media_tokens or {}).items():
            self.samples.put(f"media/{kind}", count)
        if record.cached_tokens is not None:
            self.cached_told += 1
            self.cached_requests += record.cached_tokens > 0
            self.cached_tokens += record.cached_tokens
        if record.completion_tokens is not None and record.end_ns is not None:
            self.token_ends.append((record.end_ns, record.completion_tokens))
        wanted = self.context.fixed_tokens
        self.off_length += wanted is not None and record.completion_tokens not in (None, wanted)
        self._split("repeat" if record.is_repeat else "first", record)
        if record.is_warm is not None:
            self._split("warm" if record.is_warm else "cold", record)

    def _split(self, name: str, record: ChatRecord) -> None:
        for number in SPLIT_NUMBERS:
            self.samples.put(f"split/{name}/{number}", NUMBER_OF[number](record))
