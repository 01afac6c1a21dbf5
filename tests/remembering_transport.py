"""A transport that only remembers, for protocols that are fed by hand."""

from __future__ import annotations

import asyncio
from typing import Any


class Remembering(asyncio.Transport):
    """Keeps what is written, as if its peer took nothing when ``is_stuck``."""

    def __init__(self, *, is_stuck: bool = False) -> None:
        super().__init__()
        self.written = b""
        self.is_stuck = is_stuck
        self.ended: str | None = None
        self.protocol: asyncio.Protocol

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return len(self.written) if self.is_stuck else 0

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self._end("closed")

    def abort(self) -> None:
        self._end("aborted")

    def _end(self, how: str) -> None:
        if self.ended is None:
            self.ended = how
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def is_closing(self) -> bool:
        return self.ended is not None

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...
