"""One program at a time in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vision_bench.errors import InvalidSettings
from vision_bench.media.container import display_name

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def only_run_in(folder: Path) -> Iterator[None]:
    """Make ``folder`` and hold it for the block. The hold ends with the process, however that ends: no file is left.

    Raises:
        InvalidSettings: another run holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder) as is_ours:
        if not is_ours:
            raise InvalidSettings(
                f"another prepare is cutting into {display_name(str(folder))}; wait for it, or give another --data-dir"
            )
        yield


@contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Hold a folder that is there for the block; gives False where another holds it. It ends with the process."""
    if fcntl is None:
        yield True
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # some network file systems lock no folders; there, two at once stay the user's care
        yield True
    finally:
        os.close(handle)
