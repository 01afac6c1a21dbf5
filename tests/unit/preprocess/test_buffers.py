"""Memory that is used again, and never while somebody looks at it."""

from __future__ import annotations

import numpy as np

from vision_bench.preprocess.buffers import CACHE_LINE_BYTES, BufferPool


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_comes_back_when_the_last_view_is_gone() -> None:
    """A slice of a reshaped view keeps it; the end of that slice frees it."""
    pool = BufferPool(1 << 20)
    array = pool.take((10, 10), np.float32)
    where = address(array)
    view = array.reshape(4, 25)[1:]
    del array
    assert pool.free_bytes == 0
    other = pool.take((10, 10), np.float32)
    assert address(other) != where
    del view
    assert pool.free_bytes > 0
    assert address(pool.take((10, 10), np.float32)) == where


def test_arrays_are_writable_and_begin_a_cache_line() -> None:
    """Whatever the shape and dtype."""
    pool = BufferPool(1 << 20)
    for shape, dtype in (((3, 5), np.float32), ((7,), np.uint8), ((2, 3, 4), np.uint16)):
        array = pool.take(shape, dtype)
        array[...] = 1
        assert array.shape == shape and array.dtype == dtype
        assert address(array) % CACHE_LINE_BYTES == 0


def test_memory_much_too_large_is_left_for_others() -> None:
    """A thumbnail does not sit on a film's buffer."""
    pool = BufferPool(1 << 24)
    pool.take((1 << 20,), np.uint8)
    free = pool.free_bytes
    assert free > 1 << 20
    small = pool.take((100,), np.uint8)
    assert pool.free_bytes == free
    assert small.size == 100


def test_no_more_is_kept_than_allowed() -> None:
    """The bound is on what lies unused."""
    pool = BufferPool(1000)
    arrays = [pool.take((400,), np.uint8) for _ in range(5)]
    arrays.clear()
    assert 0 < pool.free_bytes <= 1000
    nothing = BufferPool(0)
    nothing.take((400,), np.uint8)
    assert nothing.free_bytes == 0
