"""One large batch and the memory it takes: ours and the plain version in turn, with a fast and a slow upstream.

    python -m benchmarks.gateway.batch [--items 128] [--size 1600000] [--rounds 3] [--out benchmarks/gateway/batch.json]

Says how much the peak memory of the process grew over idle, as a multiple of the body, and how long before the
request's last byte was sent the upstream had its first item. Every sample starts every process anew.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gateway import arms as ways
from benchmarks.gateway.load import chat_body
from benchmarks.gateway.measure import stamp

from vision_bench.bench.rundir import write_json

PERMITS = 4
"""The gateway's default."""
DELAYS_SECONDS = {"fast": 0.0, "slow": 0.1}
"""The upstream's answer: at once, so that permits keep up with the upload, and later, so that they do not."""
WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One batch.

    Attributes:
        growth: of the peak memory over idle, as a multiple of the body.
        ahead_ms: how long the upstream had its first item before the caller had sent its last byte; below 0: after it.
        load: the machine's one-minute load average just before.
    """

    arm: str
    upstream: str
    body_bytes: int
    idle_bytes: int
    peak_bytes: int
    growth: float
    ahead_ms: float
    seconds: float
    load: float


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description="The memory that one large batch takes.")
    parser.add_argument("--items", type=int, default=128)
    parser.add_argument("--size", type=int, default=1_600_000, help="Bytes of each item's body.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Result file.")
    flags = parser.parse_args()
    samples = []
    for _ in range(flags.rounds):
        for upstream in DELAYS_SECONDS:
            for arm in ("ours", "plain"):
                samples.append(_sample(arm, upstream, flags.items, flags.size))
                print(samples[-1], file=sys.stderr, flush=True)
    rows = _rows(samples)
    print(json.dumps(rows, indent=1))
    if flags.out is not None:
        result = {
            "command": "python -m benchmarks.gateway.batch " + " ".join(sys.argv[1:]),
            "taken": stamp(),
            "items": flags.items,
            "size_bytes": flags.size,
            "rounds": flags.rounds,
            "rows": rows,
            "samples": [asdict(sample) for sample in samples],
        }
        write_json(flags.out, result)
    return 0


def _sample(name: str, upstream: str, items: int, size_bytes: int) -> Sample:
    load = os.getloadavg()[0]
    start = ways.ours if name == "ours" else ways.plain
    with (
        tempfile.TemporaryDirectory(prefix="gateway-batch-") as scratch,
        ways.upstream(delay_seconds=DELAYS_SECONDS[upstream]) as stub,
        start(stub.port, Path(scratch), permits=PERMITS) as arm,
    ):
        _post(arm.port, _batch(1, 1000))  # what is loaded with the first request is not this batch's
        arm.reset_peak()
        idle_bytes = arm.peak_bytes()
        body = _batch(items, size_bytes)
        began = time.monotonic()
        last_byte_ns = _post(arm.port, body)
        seconds = time.monotonic() - began
        peak_bytes = arm.peak_bytes()
    if stub.first_clip_ns is None:
        raise RuntimeError("the upstream saw no clip; is --size below its least?")
    return Sample(
        arm=name,
        upstream=upstream,
        body_bytes=len(body),
        idle_bytes=idle_bytes,
        peak_bytes=peak_bytes,
        growth=round((peak_bytes - idle_bytes) / len(body), 3),
        ahead_ms=round((last_byte_ns - stub.first_clip_ns) / 1e6, 1),
        seconds=round(seconds, 2),
        load=round(load, 1),
    )


def _batch(items: int, size_bytes: int) -> bytes:
    body = chat_body(size_bytes)
    return b'{"items":[' + b",".join(b'{"id":"%d","body":%s}' % (number, body) for number in range(items)) + b"]}"


def _post(port: int, body: bytes) -> int:
    """Send one batch and read its lines; when its last byte was sent. Anything but a line an item raises."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as connection:
        head = f"POST /chat/batch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        last_byte_ns = time.monotonic_ns()
        answer = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    answered, sent = answer.count(b'"status":200') + answer.count(b'"status": 200'), body.count(b'"id":')
    if answered != sent:
        raise RuntimeError(f"{answered} of {sent} items answered: {answer[:500]!r}")
    return last_byte_ns


def _rows(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Medians of each arm and upstream; of the growth the worst too."""
    rows = []
    for upstream in DELAYS_SECONDS:
        for arm in dict.fromkeys(sample.arm for sample in samples):
            mine = [sample for sample in samples if (sample.arm, sample.upstream) == (arm, upstream)]
            rows.append(
                {
                    "upstream": upstream,
                    "arm": arm,
                    "samples": len(mine),
                    "body_mb": round(mine[0].body_bytes / 1e6, 1),
                    "growth": statistics.median(sample.growth for sample in mine),
                    "worst_growth": max(sample.growth for sample in mine),
                    "ahead_ms": statistics.median(sample.ahead_ms for sample in mine),
                    "seconds": statistics.median(sample.seconds for sample in mine),
                }
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
