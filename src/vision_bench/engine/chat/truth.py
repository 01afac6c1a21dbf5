"""What each request really took, on the server's own monotonic clock; kept in a bounded list, served as NDJSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from vision_bench.wire.ndjson import dump_line

SPANS = ("preprocess_ms", "queue_ms", "prefill_ms", "decode_ms", "ttft_ms", "tpot_ms", "e2e_ms")


@dataclass(slots=True)
class Timeline:
    """One request's life. All ``_ns`` are ``time.monotonic_ns``; None is "did not get there".

    ``scheduled_ns`` is when the first sample got its slot, ``first_token_ns`` and ``last_token_ns`` when a token was
    handed to the socket. ``stages_ms`` comes from the model: declared engines tell encoder and prefill apart.
    ``outcome``: ok, http_error, client_left, broken, server_stopped; ``status`` is the HTTP status that was sent.
    """

    request_id: str
    model: str
    stream: bool
    arrived_ns: int
    prepared_ns: int | None = None
    scheduled_ns: int | None = None
    first_token_ns: int | None = None
    last_token_ns: int | None = None
    prompt_tokens: int | None = None
    tokens: int = 0
    finish_reason: str | None = None
    outcome: str = "ok"
    status: int = 200
    stages_ms: dict[str, float] = field(default_factory=dict)

    @property
    def preprocess_ms(self) -> float | None:
        """Arrival to the end of preprocessing."""
        return _between_ms(self.arrived_ns, self.prepared_ns)

    @property
    def queue_ms(self) -> float | None:
        """End of preprocessing to the slot."""
        return _between_ms(self.prepared_ns, self.scheduled_ns)

    @property
    def ttft_ms(self) -> float | None:
        """Arrival to the first token, preprocessing and queue included."""
        return _between_ms(self.arrived_ns, self.first_token_ns)

    @property
    def e2e_ms(self) -> float | None:
        """Arrival to the last token."""
        return _between_ms(self.arrived_ns, self.last_token_ns)

    @property
    def prefill_ms(self) -> float | None:
        """The slot to the first token."""
        return _between_ms(self.scheduled_ns, self.first_token_ns)

    @property
    def decode_ms(self) -> float | None:
        """First token to last token."""
        return _between_ms(self.first_token_ns, self.last_token_ns)

    @property
    def inference_ms(self) -> float | None:
        """The slot to the last token."""
        return _between_ms(self.scheduled_ns, self.last_token_ns)

    @property
    def tpot_ms(self) -> float | None:
        """Mean gap between tokens; None for fewer than two, which have no gap."""
        return None if self.decode_ms is None or self.tokens < 2 else self.decode_ms / (self.tokens - 1)

    def token(self, now_ns: int) -> None:
        """Count a token that was handed over at ``now_ns``."""
        self.tokens += 1
        if self.first_token_ns is None:
            self.first_token_ns = now_ns
        self.last_token_ns = now_ns

    def as_record(self) -> dict[str, Any]:
        """The fields and the spans between them; spans in ms, rounded to a microsecond."""
        spans = {name: getattr(self, name) for name in SPANS}
        rounded = {name: None if value is None else round(value, 3) for name, value in spans.items()}
        stages = {name: round(value, 3) for name, value in self.stages_ms.items()}
        return asdict(self) | rounded | {"stages_ms": stages}


def _between_ms(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e6


class TruthLog:
    """The last ``size`` finished requests, oldest first."""

    def __init__(self, size: int) -> None:
        self._records: deque[Timeline] = deque(maxlen=size)

    def add(self, timeline: Timeline) -> None:
        """Keep a finished request."""
        self._records.append(timeline)

    def clear(self) -> None:
        """Forget all."""
        self._records.clear()

    def lines(self, request_id: str | None = None) -> Iterator[bytes]:
        """Records as NDJSON lines; of one request id where given."""
        for timeline in list(self._records):
            if request_id is None or timeline.request_id == request_id:
                yield dump_line(timeline.as_record())
