"""Limits on one request's numbers: ``ttft_ms<500,e2e_ms<3000``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vision_bench.bench.chat.formulas import ABSENT_IS_MET, NUMBERS, has_gaps
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.record import OK
from vision_bench.errors import InvalidRequest

_LIMIT = re.compile(r"\s*(\w+)\s*(<=?)\s*([0-9]*\.?[0-9]+)\s*")


@dataclass(frozen=True, slots=True)
class Limit:
    """One number and what it must stay under."""

    name: str
    limit_ms: float
    is_inclusive: bool = False

    def is_met(self, record: ChatRecord) -> bool:
        """Whether a good answer keeps it. What is not known is not kept."""
        value = NUMBERS[self.name](record)
        if value is None:
            return self.name in ABSENT_IS_MET and has_gaps(record) is False
        return value < self.limit_ms or (self.is_inclusive and value == self.limit_ms)


def read_slo(text: str) -> tuple[Limit, ...]:
    """Limits joined by commas, each ``name<ms`` or ``name<=ms``.

    Raises:
        InvalidRequest: another form, or a number that does not exist; the message lists those that do.
    """
    limits = []
    for part in text.split(","):
        found = _LIMIT.fullmatch(part)
        if found is None or found[1] not in NUMBERS:
            raise InvalidRequest(
                f"--slo {part.strip()!r} is no limit; write name<milliseconds, joined by commas, with a name of "
                f"{', '.join(NUMBERS)}"
            )
        if not float(found[3]) > 0.0:
            raise InvalidRequest(f"--slo {part.strip()!r} is a limit that no answer keeps; give milliseconds above 0")
        limits.append(Limit(found[1], float(found[3]), found[2] == "<="))
    return tuple(limits)


def is_good(record: ChatRecord, limits: Sequence[Limit]) -> bool:
    """Answered, not found invalid, and within every limit."""
    return record.outcome == OK and record.is_valid is not False and all(limit.is_met(record) for limit in limits)
