"""A live stream under load: what a question looks at, and the film that plays while the clock runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from vision_bench.bench.chat.bodies import STREAM
from vision_bench.bench.workload import require
from vision_bench.errors import BrokenStream
from vision_bench.live.references import Anchor, FrameReference, SegmentReference, reference_url
from vision_bench.wire.chat import image_part, video_part

Json = dict[str, Any]

START_SECONDS = 60.0
STOP_SECONDS = 15.0
WAIT_MS = 10_000
"""A question that comes before the first frame waits for it, and no longer."""


class Live(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table ``[live]`` of a workload.

    Attributes:
        film: what is published, again and again, relative to the workload file.
        publish_fps: pictures a second at most; None: all of the film's.
        look: ``frame`` is the newest one, ``segment`` the last ``seconds``.
        max_fps: of a segment, at most.
        offset_ms: so far back from the newest frame: of a frame its place, of a segment its end.
    """

    film: str
    look: Literal["frame", "segment"]
    publish_fps: float | None = None
    seconds: float | None = None
    max_fps: float | None = None
    offset_ms: int = 0

    def __post_init__(self) -> None:
        is_segment = self.look == "segment"
        require(self.publish_fps is None or self.publish_fps > 0, "live.publish_fps must be above 0")
        require(is_segment == (self.seconds is not None), "live.seconds is of a segment, and every segment has one")
        require(self.seconds is None or self.seconds * 1000 >= 1, "live.seconds must be 0.001 or more")
        require(is_segment or self.max_fps is None, "live.max_fps is of a segment; a frame has none")
        require(self.max_fps is None or 0 < self.max_fps <= 1000, "live.max_fps must be above 0 and up to 1000")
        require(self.offset_ms <= 0, "live.offset_ms counts back from the newest frame; give 0 or less")

    @property
    def words(self) -> str:
        """What is looked at, for a reader of a percentile."""
        told = "newest frame" if self.seconds is None else f"last {self.seconds:g} s, {self.max_fps or 1:g} fps at most"
        back = f", {-self.offset_ms} ms back" if self.offset_ms else ""
        rate = "its film's rate" if self.publish_fps is None else f"{self.publish_fps:g} fps"
        return f"live: {told}{back}, published at {rate}"

    def part(self) -> Json:
        """The part of a body that names the frames; the stream's id is a slot, for it is known when the film plays."""
        if self.seconds is None:
            anchor = Anchor("offset_ms", self.offset_ms) if self.offset_ms else Anchor("frame_index", -1)
            return image_part(reference_url(FrameReference(STREAM, anchor, wait_ms=WAIT_MS)))
        start = Anchor("offset_ms", self.offset_ms - round(self.seconds * 1000))
        end = Anchor("offset_ms", self.offset_ms) if self.offset_ms else None
        segment = SegmentReference(STREAM, start, end, max_fps=self.max_fps or 1.0)
        return video_part(reference_url(segment))

    @property
    def history_seconds(self) -> float:
        """What must have been shown before a question finds all that it looks at."""
        return (self.seconds or 0.0) - self.offset_ms / 1000


@contextlib.asynccontextmanager
async def playing(live: Live, film: Path, *, gateway: str, api_key: str | None) -> AsyncIterator[str]:
    """The film as a camera, in a process of its own, for the length of a block; gives the stream's id.

    The block begins when there is enough of it to look back upon.

    Raises:
        BrokenStream: nothing was published.
    """
    words = [sys.executable, "-m", "vision_bench.cli", "publish", str(film), "--gateway", gateway, "--rounds", "0"]
    words += [] if live.publish_fps is None else ["--max-fps", str(live.publish_fps)]
    key = {} if api_key is None else {"VISION_BENCH_API_KEY": api_key}  # not among the words: every process reads those
    process = await asyncio.create_subprocess_exec(
        *words, env={**os.environ, **key}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield await _stream_id(process, gateway, live.history_seconds)
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End it so that it deletes its stream, and whatever it does, end it."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _stream_id(process: asyncio.subprocess.Process, gateway: str, history_seconds: float) -> str:
    try:
        async with asyncio.timeout(START_SECONDS):
            line = await process.stdout.readline() if process.stdout is not None else b""
    except TimeoutError:
        line = b""
    name, _, stream_id = line.decode(errors="replace").strip().partition(" ")
    if name != "stream" or not stream_id:
        raise BrokenStream(
            f"the film could not be published to {gateway}; `vision-bench publish` says why. Is LIVE_ENABLED set there?"
        )
    await asyncio.sleep(history_seconds + 1.0)
    return stream_id
