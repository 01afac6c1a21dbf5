"""Facts of sessions as they happen, a JSON line each: what a killed run leaves of the sessions that were under way."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from vision_bench.bench.realtime.reader import SessionReader
from vision_bench.bench.realtime.record import Fact, SessionRecord
from vision_bench.bench.rundir import LineFile

LOST = "lost"
"""Outcome: a killed run took the record; what is known is from the journal."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fact and the session that it belongs to. The first line of a session says where the session belongs."""

    session: int
    fact: Fact
    step: int | None = None
    index: int | None = None
    due_ns: int | None = None
    num_chunks: int | None = None


class Journal:
    """The file, written line by line; going on with one takes back what a killed run left of a last line."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)
        self._begun: set[int] = set()

    def add(self, record: SessionRecord, fact: Fact) -> None:
        """Note one fact of a session."""
        place: dict[str, Any] = {}
        if record.ordinal not in self._begun:
            self._begun.add(record.ordinal)
            place = {
                "step": record.step,
                "index": record.index,
                "due_ns": record.due_ns,
                "num_chunks": record.num_chunks,
            }
        self._lines.append(msgspec.json.encode(Line(record.ordinal, fact, **place)))

    def close(self) -> None:
        """No more lines."""
        self._lines.close()


def lost_sessions(path: Path, known: Collection[int]) -> Iterator[SessionRecord]:
    """Sessions of the journal that have no record, put together again as far as they went.

    Args:
        path: the journal; a last line that is not whole is left out.
        known: ordinals that have a record.
    """
    if not path.exists():
        return
    readers: dict[int, SessionReader] = {}
    records: dict[int, SessionRecord] = {}
    decoder = msgspec.json.Decoder(Line)
    with path.open("rb") as lines:
        for text in lines:
            if not text.endswith(b"\n"):
                break
            line = decoder.decode(text)
            if line.session in known:
                continue
            if line.session not in records:
                record = SessionRecord(
                    step=line.step or 0,
                    index=line.index or 0,
                    ordinal=line.session,
                    due_ns=line.due_ns or 0,
                    dsp_ns=line.fact.ns,
                    num_chunks=line.num_chunks or 0,
                )
                records[line.session], readers[line.session] = record, SessionReader(record)
            readers[line.session].take(line.fact)
            records[line.session].stop_ns = line.fact.ns
    for record in records.values():
        if record.outcome is None:
            record.end(LOST, "the run was killed while it ran")
        yield record
