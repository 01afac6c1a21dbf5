"""A file is written under a draft's name beside it and takes its own when it is complete: whole, or not at all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

DRAFTS = ".*.part"
"""Glob of what writers that were killed may have left in a folder."""


def draft_of(path: Path) -> Path:
    """A hidden name in the folder of ``path``; another thread or process that writes the same file has another."""
    return path.with_name(f".{path.name}.{threading.get_native_id()}.part")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """The draft to write; it takes the place of ``path`` when the block ends well, and is removed when it does not.

    Raises:
        OSError: it cannot be put there; whatever the block raises.
    """
    draft = draft_of(path)
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong says more than a draft that cannot be removed
            draft.unlink()
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Put a file in place whole; text as UTF-8.

    Raises:
        OSError: it cannot be written; an earlier file is as it was.
        UnicodeEncodeError: text with half a character.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(path) as draft:
        draft.write_bytes(data)
