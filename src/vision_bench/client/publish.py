"""``vision-bench publish``: a stream made, a film sent into it, the stream deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vision_bench.client.live import LiveClient
from vision_bench.client.live_film import Published


async def publish(
    film: Path,
    *,
    gateway: str,
    api_key: str | None = None,
    max_fps: float | None = None,
    rounds: int | None = 1,
    keep: bool = False,
    on_stream: Callable[[str], None] = lambda stream_id: None,
    on_picture: Callable[[Published], None] = lambda so_far: None,
) -> Published:
    """Create a stream, send ``film`` into it at its own pace, and delete the stream.

    Args:
        rounds: how often the film is shown; None: until it is cancelled or the stream ends.
        keep: leave the stream to its lease.
        on_stream: told the stream's id before the first picture.

    Raises:
        InvalidMedia: the film holds no pictures.
        ConnectFailed, UpstreamTimeout, HttpFailure, BrokenStream: the gateway cannot be reached, refuses, or ends it.
    """
    async with LiveClient(gateway, api_key=api_key) as client, client.stream(keep=keep) as stream:
        on_stream(stream.id)
        return await client.publish(stream, film, max_fps=max_fps, rounds=rounds, on_picture=on_picture)
