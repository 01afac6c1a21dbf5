"""Output buffers that are used again: a page of fresh memory costs more to touch than to fill."""

from __future__ import annotations

import math
import weakref
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE_BYTES = 64


class BufferPool:
    """Arrays that begin a cache line, taken back when the last view of them is gone.

    Safe from any thread. A consumer that keeps an array (``torch.from_numpy`` does, for as long as its tensor lives)
    keeps its memory out of the pool for as long, so nothing is overwritten under it.
    """

    __slots__ = ("_free", "max_free_bytes")

    def __init__(self, max_free_bytes: int) -> None:
        self.max_free_bytes = max_free_bytes
        """How much may lie unused; 0 keeps nothing."""
        self._free: deque[NDArray[np.uint8]] = deque()

    @property
    def free_bytes(self) -> int:
        """Memory that waits to be used again."""
        return sum(memory.nbytes for memory in list(self._free))

    def take(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A writable array with nothing in particular in it."""
        kind = np.dtype(dtype)
        size_bytes = math.prod(shape) * kind.itemsize
        memory = self._fitting(size_bytes + CACHE_LINE_BYTES)
        if memory is None:
            memory = np.empty(size_bytes + CACHE_LINE_BYTES, np.uint8)
        begin = -memory.ctypes.data % CACHE_LINE_BYTES
        # NumPy lets a view keep the lowest array alive. Through a memoryview that is `array`: its end is that of all
        # views, and `memory` outlives it.
        array = np.frombuffer(memory.data[begin : begin + size_bytes], kind)
        weakref.finalize(array, self._take_back, memory).atexit = False
        return array.reshape(shape)

    def _fitting(self, size_bytes: int) -> NDArray[np.uint8] | None:
        """Free memory of this size, or of at most twice as much; what does not fit goes to the end of the row."""
        for _ in range(len(self._free)):
            try:
                memory = self._free.popleft()
            except IndexError:  # another thread took the last one
                return None
            if size_bytes <= memory.nbytes <= 2 * size_bytes:
                return memory
            self._free.append(memory)
        return None

    def _take_back(self, memory: NDArray[np.uint8]) -> None:
        # Runs wherever the last view dies, possibly within `take`: a deque needs no lock for that.
        self._free.append(memory)
        while self.free_bytes > self.max_free_bytes:
            try:
                self._free.popleft()
            except IndexError:
                return
