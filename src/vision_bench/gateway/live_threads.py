"""Which upstream a thread's questions go to, so that what it remembers of them can be used again. Arithmetic alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def place_of(thread: tuple[str, str], places: Iterable[int]) -> int:
    """One of ``places`` (at least one), the same for a thread as long as it is among them.

    The place with the highest hash together with the thread: nothing is stored, and when a place goes or comes, only
    the threads that were or will be there move.
    """
    owner, name = thread
    seed = f"{len(owner)}:{owner}:{name}".encode("utf-8", "surrogatepass")
    return max(places, key=lambda place: hashlib.sha256(b"%d:" % place + seed).digest())
