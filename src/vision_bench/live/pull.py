"""A stream that the server pulls: an RTSP camera, an HLS play list, or a film file that stands in for a camera.

One thread a source, for libav blocks. A source that breaks off is opened again, after 1 s at first, then twice as long
each time, up to 30; one that ends twice in quick succession has ended.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av

from vision_bench.errors import InvalidMedia
from vision_bench.live.allowed import AllowedHosts
from vision_bench.live.failures import StreamFailure
from vision_bench.live.fetching import SCHEMES, Fetched
from vision_bench.live.films import HugePictures, Rounds, bound_pixels, pictures
from vision_bench.live.handover import Handover
from vision_bench.live.inlet import Inlet
from vision_bench.live.media_clock import MediaClock
from vision_bench.live.registry import Source
from vision_bench.media.probe import decode_past_damage

OPEN_SECONDS = 15.0
"""How long a creation waits for the first picture."""
IO_SECONDS = 10.0
FIRST_WAIT_SECONDS, LAST_WAIT_SECONDS = 1.0, 30.0
SHORT_NS = 5_000_000_000
"""A source that gave pictures for less than this ended in quick succession to its beginning."""
AHEAD_SECONDS = 2.0
"""A picture that is later than this begins the pace anew."""
_TICKS = 90_000

Pictures = Iterator[tuple[float, av.VideoFrame]]


@dataclass(frozen=True, slots=True)
class PullRules:
    """What may be pulled. ``folder``: its files may be; None: none."""

    hosts: AllowedHosts
    folder: Path | None = None


def check_source(kind: Source, url: str, rules: PullRules) -> None:
    """Refuse what may not be pulled. Looks names up, which blocks.

    Raises:
        StreamFailure: ``source_refused``, or ``source_failed`` for a host that is not known. No message holds the URL.
    """
    if kind == "file":
        _film(url, rules)
    else:
        rules.hosts.target(url, ("rtsp",) if kind == "rtsp" else SCHEMES)


class Pull:
    """One source that feeds one stream. Made and closed on the event loop.

    Args:
        on_end: called on the event loop when the source has ended for good.
    """

    def __init__(self, kind: Source, url: str, inlet: Inlet, rules: PullRules, *, on_end: Callable[[], None]) -> None:
        self._kind = kind
        self._url = url
        self._inlet = inlet
        self._rules = rules
        self._on_end = on_end
        self._hand = Handover(inlet, loop=asyncio.get_running_loop())
        self._stop = threading.Event()
        self._too_large: HugePictures | None = None
        self._first: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._media = MediaClock()
        self._rounds = Rounds()  # however often it is opened, times go on
        self._pace = None if kind == "rtsp" else _Pace(self._stop)
        self._thread = threading.Thread(target=self._run, name="live-pull", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether its thread is still there."""
        return self._thread.is_alive()

    async def opened(self) -> None:
        """Wait for the first picture.

        Raises:
            StreamFailure: ``source_failed``: there was none in time, or it is larger than may be decoded.
        """
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                is_open = await asyncio.shield(self._first)
        except TimeoutError:
            is_open = False
        if not is_open:
            if self._too_large is not None:
                raise self._too_large
            raise StreamFailure("source_failed", "the source gave no picture; is it on, and is it video?")

    async def close(self) -> None:
        """Stop at the next picture, or when libav's own time is over. Does not wait for it."""
        self._stop.set()

    def _run(self) -> None:
        wait_seconds = FIRST_WAIT_SECONDS
        short_ends = 0
        while not (self._stop.is_set() or self._hand.is_over):
            began_ns = self._inlet.clock()
            count = self._show_until_it_ends()
            if self._stop.is_set() or (self._kind == "file" and count):
                continue  # a film begins again at once
            if not self._first.done() and not count:
                break  # it never opened: whoever asked for it is told
            short_ends = short_ends + 1 if count and self._inlet.clock() - began_ns < SHORT_NS else 0
            if short_ends == 2:
                break
            wait_seconds = FIRST_WAIT_SECONDS if count else min(2 * wait_seconds, LAST_WAIT_SECONDS)
            self._stop.wait(wait_seconds)
        self._hand.in_loop(lambda: self._ended(was_stopped=self._stop.is_set()))

    def _has_begun(self) -> None:
        if not self._first.done():
            self._first.set_result(True)

    def _ended(self, *, was_stopped: bool) -> None:
        if not self._first.done():
            self._first.set_result(False)
        if not was_stopped:
            self._on_end()

    def _show_until_it_ends(self) -> int:
        """How many pictures there were."""
        count = 0
        try:
            for seconds, picture in self._pictures(self._inlet.limits.decoded_pixels):
                at_seconds = self._rounds.at(seconds)
                if self._pace is not None:
                    self._pace.wait(at_seconds)
                if self._stop.is_set() or self._hand.is_over:
                    break
                count += 1
                now_ns = self._inlet.clock()
                at_ns = self._media.at_ns(round(at_seconds * _TICKS) % 2**32, arrived_ns=now_ns)
                self._hand.take(picture, at_ns=at_ns, arrived_ns=now_ns, stamps={"decoded": self._inlet.stamp(now_ns)})
                if count == 1:
                    self._hand.in_loop(self._has_begun)
        except HugePictures as problem:
            self._too_large = problem
        except (av.FFmpegError, OSError, StreamFailure, InvalidMedia, ValueError, IndexError):
            pass  # it is opened again; why it broke off may hold the URL, so nobody is told
        self._rounds.end()
        return count

    def _pictures(self, max_pixels: int) -> Pictures:
        if self._kind == "file":
            return pictures(_film(self._url, self._rules), max_pixels=max_pixels)
        pull = _rtsp if self._kind == "rtsp" else _hls
        return pull(self._url, self._rules, max_pixels)


class _Pace:
    """Waits for each picture until it is due: files and segments are there long before. Cameras have their own pace."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._anchor: float | None = None

    def wait(self, at_seconds: float) -> None:
        """Until ``at_seconds`` of the source's time, or until it is to stop."""
        now = time.monotonic()
        late = 0.0 if self._anchor is None else now - (self._anchor + at_seconds)
        if self._anchor is None or not -LAST_WAIT_SECONDS < late < AHEAD_SECONDS:
            self._anchor, late = now - at_seconds, 0.0
        if late < 0:
            self._stop.wait(-late)


def _film(name: str, rules: PullRules) -> Path:
    """A file within the folder.

    Raises:
        StreamFailure: it is not, or is none.
    """
    if rules.folder is None:
        raise StreamFailure("source_refused", "no files are pulled here (LIVE_PULL_FOLDER)")
    folder = rules.folder.resolve()
    try:
        path = (folder / name).resolve()
        is_within = path.is_relative_to(folder) and path.is_file()
    except (OSError, ValueError):
        is_within = False
    if not is_within:
        raise StreamFailure("source_refused", "there is no such file in LIVE_PULL_FOLDER")
    return path


def _rtsp(url: str, rules: PullRules, max_pixels: int) -> Pictures:
    """By the address that was checked; nothing but RTSP and TCP is opened, so that no file can be named."""
    target = rules.hosts.target(url, ("rtsp",))
    host = f"[{target.address}]" if ":" in target.address else target.address
    user = target.parts.netloc.rpartition("@")[0]
    pinned = target.parts._replace(netloc=f"{user}@{host}:{target.port}" if user else f"{host}:{target.port}").geturl()
    # Not nobuffer: it throws away what was looked at to find the codec, and with it the key frame.
    options = {"rtsp_transport": "tcp", "protocol_whitelist": "rtsp,tcp", "analyzeduration": "1000000"}
    return _decoded(pinned, options, max_pixels, low_delay=True)


def _hls(url: str, rules: PullRules, max_pixels: int) -> Pictures:
    """Every file of the play list is fetched by us, and none by libav."""

    def fetch(wanted: str, _flags: int, _options: Any) -> Fetched:
        return Fetched(wanted, rules.hosts)

    options = {"protocol_whitelist": "http,https,tcp,tls,crypto", "http_persistent": "0"}
    return _decoded(url, options, max_pixels, io_open=fetch, format="hls")


def _decoded(url: str, options: dict[str, str], max_pixels: int, *, low_delay: bool = False, **more: Any) -> Pictures:
    # From here on libav asks one thread for each picture, so nothing waits inside a decoder.
    with av.open(url, options=options, timeout=(IO_SECONDS, IO_SECONDS), **more) as container:
        if not container.streams.video:
            return
        stream = container.streams.video[0]
        stream.thread_type = "NONE" if low_delay else "SLICE"
        bound_pixels(stream, max_pixels=max_pixels)
        first: float | None = None
        for picture in decode_past_damage(container, stream):
            if picture.time is not None:
                first = picture.time if first is None else first
                yield picture.time - first, picture
