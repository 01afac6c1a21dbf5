"""One request's numbers, in ms: docs/metrics.md as code. None where a stamp or a count that it needs is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from vision_bench.bench.chat.record import ChatRecord

STALL_MS = 100.0
"""A gap is a stall as far as it is longer than this: about where a reader sees text stop."""


def between_ms(start_ns: int | None, end_ns: int | None) -> float | None:
    """Milliseconds between two stamps."""
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e6


def first_ns(record: ChatRecord) -> int | None:
    """k1: the first content event."""
    return record.k_ns[0] if record.k_ns else None


def last_ns(record: ChatRecord) -> int | None:
    """km, the last content event; the end of an answer that has none, streamed or not."""
    return record.k_ns[-1] if record.k_ns else record.end_ns


def ttft_ms(record: ChatRecord) -> float | None:
    """k1 - hdr."""
    return between_ms(record.hdr_ns, first_ns(record))


def scheduled_ttft_ms(record: ChatRecord) -> float | None:
    """k1 - due."""
    return between_ms(record.due_ns, first_ns(record))


def first_text_ms(record: ChatRecord) -> float | None:
    """First text - hdr: behind the reasoning."""
    return between_ms(record.hdr_ns, record.k1_text_ns)


def ttfb_ms(record: ChatRecord) -> float | None:
    """rsp - hdr: the answer's headers."""
    return between_ms(record.hdr_ns, record.rsp_ns)


def e2e_ms(record: ChatRecord) -> float | None:
    """km - hdr; end - hdr for an answer in one piece."""
    return between_ms(record.hdr_ns, last_ns(record))


def response_ms(record: ChatRecord) -> float | None:
    """km - due; end - due for an answer in one piece."""
    return between_ms(record.due_ns, last_ns(record))


def full_response_ms(record: ChatRecord) -> float | None:
    """end - hdr."""
    return between_ms(record.hdr_ns, record.end_ns)


def parsed_ms(record: ChatRecord) -> float | None:
    """par - due: the answer can be used as text or JSON."""
    return between_ms(record.due_ns, record.par_ns)


def validated_ms(record: ChatRecord) -> float | None:
    """val - due."""
    return between_ms(record.due_ns, record.val_ns)


def workflow_ms(record: ChatRecord) -> float | None:
    """val - dec: from the application's decision to an answer it can use."""
    return between_ms(record.dec_ns, record.val_ns)


def lag_ms(record: ChatRecord) -> float | None:
    """dsp - due: the harness's own."""
    return between_ms(record.due_ns, record.dsp_ns)


def wait_ms(record: ChatRecord) -> float | None:
    """hdr - dsp: for a place under ``--rate`` with ``--concurrency``, and for a connection."""
    return between_ms(record.dsp_ns, record.hdr_ns)


def connect_ms(record: ChatRecord) -> float | None:
    """con - dsp, where a connection was made for this request."""
    return between_ms(record.dsp_ns, record.con_ns) if record.is_new_connection else None


def upload_ms(record: ChatRecord) -> float | None:
    """bod - hdr: until the kernel had taken the last byte."""
    return between_ms(record.hdr_ns, record.bod_ns)


def gaps_ms(record: ChatRecord) -> list[float]:
    """ICL: k(i+1) - k(i)."""
    return [(later - earlier) / 1e6 for earlier, later in pairwise(record.k_ns)]


def max_gap_ms(record: ChatRecord) -> float | None:
    """The longest gap of one answer."""
    return max(gaps_ms(record), default=None)


def stall_ratio(record: ChatRecord) -> float | None:
    """Share of the time from first to last event that gaps took beyond ``STALL_MS`` each."""
    total_ms = math.fsum(gaps_ms(record))
    if not total_ms:
        return None
    return math.fsum(max(0.0, gap - STALL_MS) for gap in gaps_ms(record)) / total_ms


def first_tokens(record: ChatRecord) -> int:
    """n1: tokens in the first content event; 1 where the server does not tell."""
    return record.k_tokens[0] if record.k_tokens else 1


def has_gaps(record: ChatRecord) -> bool | None:
    """Whether tokens came after the first event; None where their number is not known."""
    return None if record.completion_tokens is None else record.completion_tokens > first_tokens(record)


def tpot_ms(record: ChatRecord) -> float | None:
    """(km - k1) / (N - n1); None if N <= n1, or unknown, or if all came in one event."""
    if len(record.k_ns) < 2 or record.completion_tokens is None or not has_gaps(record):
        return None
    total_ms = (record.k_ns[-1] - record.k_ns[0]) / 1e6
    return total_ms / (record.completion_tokens - first_tokens(record))


def ntpot_ms(record: ChatRecord) -> float | None:
    """(km - hdr) / N."""
    total_ms = e2e_ms(record)
    return total_ms / record.completion_tokens if total_ms is not None and record.completion_tokens else None


def itl_ms(record: ChatRecord) -> list[float]:
    """Per token: gap i counted d times at gap / d, d = tokens in event i+1.

    Known with usage in every event, or where there are as many events as tokens; else empty.
    """
    gaps = gaps_ms(record)
    if record.k_tokens:
        counts: Sequence[int] = [later - earlier for earlier, later in pairwise(record.k_tokens)]
    elif record.completion_tokens == len(record.k_ns):
        counts = [1] * len(gaps)
    else:
        return []
    # An event without a new token belongs to the next one that has some.
    found: list[float] = []
    carried_ms = 0.0
    for gap, count in zip(gaps, counts, strict=True):
        carried_ms += gap
        if count > 0:
            found += [carried_ms / count] * count
            carried_ms = 0.0
    return found


NUMBERS: dict[str, Callable[[ChatRecord], float | None]] = {
    "ttft_ms": ttft_ms,
    "scheduled_ttft_ms": scheduled_ttft_ms,
    "first_text_ms": first_text_ms,
    "ttfb_ms": ttfb_ms,
    "max_icl_ms": max_gap_ms,
    "tpot_ms": tpot_ms,
    "ntpot_ms": ntpot_ms,
    "e2e_ms": e2e_ms,
    "response_ms": response_ms,
    "full_response_ms": full_response_ms,
    "validated_ms": validated_ms,
    "workflow_ms": workflow_ms,
}
"""Numbers of one request that a limit may be set on."""

ABSENT_IS_MET = frozenset({"max_icl_ms", "tpot_ms"})
"""A short answer has no gap, hence none that is too long."""
