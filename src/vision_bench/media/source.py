"""A file or its bytes, opened as a container; every library error becomes InvalidMedia that names the source."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import av
import av.error

from vision_bench.errors import InvalidMedia

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.stream import VideoStream


def source_name(source: Path | bytes) -> str:
    """What an error message calls it: the file name, or the size of a payload that has none."""
    return source.name if isinstance(source, Path) else f"payload of {len(source)} bytes"


@contextmanager
def open_source(source: Path | bytes) -> Iterator[InputContainer]:
    """The opened container.

    Raises:
        InvalidMedia: no such file, an empty one, or nothing that a demuxer knows.
    """
    name = source_name(source)
    if isinstance(source, bytes) and not source:
        raise InvalidMedia(f"{name}: no data; send a video file such as MP4")
    try:
        # "file:" keeps ffmpeg from reading "a:b.mp4" as a protocol and "-x.mp4" as an option.
        opened = f"file:{source}" if isinstance(source, Path) else io.BytesIO(source)
        container = av.open(opened, mode="r", metadata_errors="replace")
    except (av.error.FFmpegError, OSError) as error:
        raise InvalidMedia(
            f"{name}: not readable as video or sound ({_reason(error)}); check that it is whole"
        ) from error
    with container:
        yield container


def picture_stream(container: InputContainer) -> VideoStream | None:
    """The first moving picture: a cover image attached to a sound file is not one."""
    for stream in container.streams.video:
        if not stream.disposition & stream.disposition.attached_pic:
            return stream
    return None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
