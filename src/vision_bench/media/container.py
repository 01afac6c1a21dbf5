"""Open a file or bytes as a media container, whatever it is called and whoever sent it."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import av
from av.container import InputContainer

from vision_bench.errors import InvalidMedia

READ_BUFFER_BYTES = 1 << 18

READING_ENDS = (av.error.FFmpegError, IndexError)
"""What reading packets of a damaged file ends with; IndexError for a stream that was not there at the start."""


def display_name(source: Path | str) -> str:
    """A file name that can be printed: what is not UTF-8 and line breaks appear as escapes."""
    name = source.name if isinstance(source, Path) else source
    printable = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in printable)


def read_handle(source: Path | bytes) -> BinaryIO:
    """A seekable handle. The library never sees a name, so no name can be read as a protocol, pattern or option."""
    return io.BytesIO(source) if isinstance(source, bytes) else Path(os.fspath(source)).open("rb")


@contextmanager
def open_media(source: Path | bytes, *, name: str | None = None) -> Iterator[InputContainer]:
    """The opened container; closed, with its file, on the way out.

    A play list may name other files and addresses: every protocol is refused, so only these bytes are read.

    Raises:
        InvalidMedia: missing, empty, or not a container that can be read. The message names the file and the remedy.
    """
    shown = name if name is not None else (display_name(source) if isinstance(source, Path) else "<bytes>")
    # os.path, since a name too long for any file is an error to Path and simply no file to it.
    if isinstance(source, Path) and not os.path.isfile(source):  # noqa: PTH113
        raise InvalidMedia(f"{shown}: no such file; looked at {display_name(str(source))}")
    try:
        readable = read_handle(source)
    except OSError as problem:
        raise InvalidMedia(unreadable(shown, problem)) from problem
    with readable as handle:
        if handle.seek(0, io.SEEK_END) == 0:
            raise InvalidMedia(f"{shown}: the file is empty (0 bytes); copy or record it again")
        handle.seek(0)
        try:
            opened = av.open(
                handle,
                mode="r",
                options={"protocol_whitelist": "none"},
                metadata_errors="replace",
                buffer_size=READ_BUFFER_BYTES,
            )
        except (av.error.FFmpegError, UnicodeError) as problem:
            raise InvalidMedia(
                f"{shown}: not a video file that can be read ({reason_of(problem)}); "
                "it may be cut short, still being written, or something else under a video name"
            ) from problem
        with opened:
            yield opened


@contextmanager
def writable(path: Path) -> Iterator[str]:
    """A spelling of ``path`` that PyAV can write to: it takes text alone, and a name may hold other bytes."""
    try:
        spelled = f"file:{path.absolute()}"
        spelled.encode("utf-8")
    except UnicodeEncodeError:
        # A handle on the folder stands in for the part that cannot be spelled.
        handle = os.open(path.parent, os.O_RDONLY)
        stand_in = Path(f"/proc/self/fd/{handle}/.clip-{threading.get_ident()}.part")
        try:
            yield f"file:{stand_in}"
            if stand_in.exists():
                stand_in.replace(path)
        finally:
            stand_in.unlink(missing_ok=True)
            os.close(handle)
    else:
        yield spelled


def unreadable(shown: str, problem: OSError) -> str:
    """The message for a file that is there and cannot be opened."""
    return f"{shown}: cannot be read ({reason_of(problem)}); check its rights and its disk"


def reason_of(problem: Exception) -> str:
    """What the library says went wrong, in a few words."""
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return str(text)
