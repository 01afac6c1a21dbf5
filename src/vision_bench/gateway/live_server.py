"""The streams of one gateway: their registry, their tokens, and what feeds each of them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, Self

from starlette.requests import HTTPConnection

from vision_bench.gateway.keys import owner_of
from vision_bench.gateway.room import Buffer
from vision_bench.gateway.settings import Settings
from vision_bench.live.allowed import AllowedHosts
from vision_bench.live.clocks import Stamp
from vision_bench.live.failures import StreamFailure
from vision_bench.live.inlet import FrameLimits, Inlet
from vision_bench.live.pull import PullRules, check_source
from vision_bench.live.registry import Limits, Registry, Source, Stream
from vision_bench.live.tokens import Scope, Tokens

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
VIEW_SECONDS = 300
LOOKUPS = 2
"""Sources that are checked at once."""


class Feed(Protocol):
    """What sends frames into a stream: a WebRTC session, a connection that pushes, a pull."""

    async def close(self) -> None:
        """Stop, and let go of everything. Called once."""


class LiveServer:
    """Everything that the routes of ``/v1beta`` share. Entered on the running event loop.

    Attributes:
        clock_id: names this process' clock in stamps: those of another process are never subtracted from its own.
        pictures: room for the pictures that questions put into their bodies, as much as there is for bodies.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.settings = settings
        self.clock = clock
        self.clock_id = f"server-{secrets.token_hex(4)}"
        self.tokens = Tokens(clock=clock)
        self.frame_limits = FrameLimits(
            frame_bytes=settings.live_max_frame_bytes, pixels=settings.live_max_pixels, fps=settings.live_max_fps
        )
        self.pull_rules = PullRules(AllowedHosts(settings.live_pull_hosts), settings.live_pull_folder)
        self.registry = Registry(
            Limits(
                ttl_seconds=settings.live_ttl_seconds,
                streams_per_owner=settings.live_streams_per_key,
                streams=settings.live_streams,
                ring_bytes=settings.live_ring_bytes,
                retention_seconds=settings.live_retention_seconds,
            ),
            clock=clock,
            on_end=self._ended,
        )
        self.pictures = Buffer(
            settings.gateway_buffer_bytes, acquire_timeout_seconds=settings.vllm_acquire_timeout_seconds
        )
        self._lookups = asyncio.Semaphore(LOOKUPS)
        self._feeds: dict[str, Feed] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self.in_background(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *(feed.close() for feed in self._feeds.values()), return_exceptions=True)
        self._feeds.clear()

    def inlet(self, stream: Stream) -> Inlet:
        """A way into the stream, with this server's limits."""
        return Inlet(stream, self.frame_limits, clock_id=self.clock_id, clock=self.clock)

    def stamp(self, at_ns: int) -> Stamp:
        """A reading of this server's clock."""
        return Stamp(self.clock_id, at_ns)

    async def check_source(self, kind: Source, url: str) -> None:
        """Refuse what may not be pulled. Few names are looked up at once: a name may take its servers a minute, and
        the threads are those that put frames into questions.

        Raises:
            StreamFailure: ``source_refused``, ``source_failed``.
        """
        async with self._lookups:
            await asyncio.to_thread(check_source, kind, url, self.pull_rules)

    def feed(self, stream: Stream, feed: Feed) -> None:
        """``feed`` is what sends into the stream from now on; what did so before is stopped: a camera that lost its
        connection comes anew while the old one still seems to be there."""
        before = self._feeds.get(stream.id)
        self._feeds[stream.id] = feed
        if before is not None and before is not feed:
            self.in_background(before.close())

    def feed_of(self, stream_id: str) -> Feed | None:
        """What sends into the stream."""
        return self._feeds.get(stream_id)

    def left(self, stream_id: str, feed: Feed) -> None:
        """``feed`` has stopped by itself."""
        if self._feeds.get(stream_id) is feed:
            del self._feeds[stream_id]

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` beside everything else; it is cancelled when the server stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            logger.error("a live stream's background work failed: %s", type(problem).__name__, exc_info=problem)

    def _ended(self, stream: Stream) -> None:
        feed = self._feeds.pop(stream.id, None)
        if feed is not None:
            self.in_background(feed.close())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.registry.sweep()

    def by_token(self, connection: HTTPConnection, scope: Scope, stream_id: str, *, token: str | None = None) -> Stream:
        """The active stream whose token the caller shows, in its Authorization header when ``token`` is not given.

        Raises:
            StreamFailure: ``stream_unauthorized`` without such a token, ``stream_not_found`` when the stream has ended.
        """
        if not self.tokens.admits(token or bearer(connection), scope, stream_id):
            raise StreamFailure(
                "stream_unauthorized", f"send Authorization: Bearer <token> with a {scope} token of this stream"
            )
        return self.registry.by_id(stream_id)

    def base_url(self, connection: HTTPConnection) -> str:
        """Where the caller reaches this gateway: LIVE_PUBLIC_URL, or the Host that it asked itself."""
        if self.settings.live_public_url is not None:
            return self.settings.live_public_url
        return str(connection.base_url).rstrip("/")

    def owner(self, connection: HTTPConnection) -> str:
        """Whose streams the caller sees."""
        return owner_of(connection.scope)


def bearer(connection: HTTPConnection) -> str:
    """The token of the Authorization header; empty when there is none."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
