"""The videos of a run decoded once, after it: pictures, their times, sizes and digests, a line a session.

Decoding takes processor time that the run's own clock must not pay for, so it waits until every session is over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import msgspec

from vision_bench.bench.realtime.pixels import PixelProof, prove
from vision_bench.bench.realtime.record import SessionRecord
from vision_bench.bench.realtime.records import FrameTime
from vision_bench.bench.rundir import LineFile
from vision_bench.errors import InvalidMedia
from vision_bench.media.lock import held
from vision_bench.media.marks import read_marks
from vision_bench.media.streamed import decode_stream
from vision_bench.wire.realtime.marks import Marks

VIDEOS = "videos"
PICTURES = "pictures.jsonl"


class DecodedSession(msgspec.Struct, frozen=True, omit_defaults=True):
    """One session's video, column by column: N pictures in order of decoding.

    Attributes:
        problem: why it could not be decoded; the columns are empty then.
        marks: what a reference server wrote into each picture: frame, chunk, digests of events; None where nothing.
    """

    session: int
    pts_seconds: list[float] = []
    end_bytes: list[int] = []
    sizes: list[tuple[int, int]] = []
    digests: list[str] = []
    marks: list[tuple[int, int, list[int]] | None] = []
    problem: str | None = None

    def frames(self, record: SessionRecord) -> list[FrameTime]:
        """The pictures with the moments at which the session's bytes were there for them."""
        ends = list(accumulate(chunk.received_bytes for chunk in record.chunks))
        columns = zip(self.pts_seconds, self.end_bytes, self.sizes, self.digests, strict=True)
        found = []
        for pts_seconds, end_byte, (width, height), digest in columns:
            place = min(bisect_left(ends, end_byte), len(ends) - 1)
            found.append(FrameTime(pts_seconds, record.chunks[place].arrival_ns, width, height, digest))
        return found

    def proof(self, record: SessionRecord) -> PixelProof | None:
        """What the marks prove; None of a server that writes none."""
        return prove(
            [None if one is None else Marks(one[0], one[1], tuple(one[2])) for one in self.marks], record.chunks
        )


def decode_videos(folder: Path, *, keep: bool) -> None:
    """Decode every video of a run folder that was not decoded yet, and note its pictures; none while the run goes on.

    Args:
        keep: leave the videos where they are.
    """
    if not (folder / VIDEOS).is_dir():
        return
    with held(folder / VIDEOS) as is_ours:
        if is_ours:  # else a run is under way, and its videos are being written
            _decode_all(folder, keep=keep)


def _decode_all(folder: Path, *, keep: bool) -> None:
    videos = sorted((folder / VIDEOS).glob("*.mp4"))
    if not videos:
        return
    known = {one.session for one in read_pictures(folder)}
    lines = LineFile(folder / PICTURES)
    try:
        for path in videos:
            session = int(path.stem)
            if session not in known:
                lines.append(msgspec.json.encode(decode_video(path, session)))
            if not keep:
                path.unlink()
    finally:
        lines.close()
    if not keep:
        (folder / VIDEOS).rmdir()


def decode_video(path: Path, session: int) -> DecodedSession:
    """One video as columns."""
    if not path.stat().st_size:
        return DecodedSession(session)
    found = DecodedSession(session, [], [], [], [], [])
    try:
        for picture in decode_stream(path):
            found.pts_seconds.append(round(picture.pts_seconds, 6))
            found.end_bytes.append(picture.end_byte)
            found.sizes.append((picture.width, picture.height))
            found.digests.append(picture.digest)
            marks = read_marks(picture.luma)
            found.marks.append(None if marks is None else (marks.frame, marks.chunk, list(marks.event_digests)))
    except (InvalidMedia, IndexError) as problem:
        return DecodedSession(session, problem=str(problem))
    return found


def read_pictures(folder: Path) -> Iterator[DecodedSession]:
    """The sessions that were decoded; a last line that is not whole is left out."""
    path = folder / PICTURES
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(DecodedSession)
    with path.open("rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield decoder.decode(line)
