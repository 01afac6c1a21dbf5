"""The loops around :mod:`vision_bench.preprocess.lanes`, compiled by Numba and free of the interpreter's lock.

A unit of work is one row of tokens of one tubelet. Its source rows are filtered across into a small buffer that stays
in the cache, then each patch is filtered down, normalised and written once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from vision_bench.preprocess.geometry import Grid
from vision_bench.preprocess.lanes import (
    KINDS,
    TAPS_A_LOAD,
    across_pixel,
    copy_bytes,
    pair_rows,
    spread_pixels,
    strip,
    strip_down,
)
from vision_bench.preprocess.reference import Backend, shift_and_scale
from vision_bench.preprocess.resample import Axis
from vision_bench.preprocess.spec import Spec

_OUT = {"float32": types.float32, "bfloat16": types.uint16, "uint8": types.uint8}
_AXIS = types.Tuple((types.Array(types.int32, 1, "C"), types.Array(types.int16, 2, "C"), types.int32))


class Scratch(NamedTuple):
    """What one thread works in."""

    line: NDArray[np.uint8]
    """A source row of packed pixels, with room for the last load."""
    rows: NDArray[np.uint32]
    """(source rows of a unit and one more, target width) wide pixels."""
    pairs: NDArray[np.uint32]
    """(3, source rows of a unit, patch) one strip's rows, two and two."""


class Filter(NamedTuple):
    """An axis as the loops take it: empty where nothing is filtered."""

    starts: NDArray[np.int32]
    weights: NDArray[np.int16]
    precision: np.int32


def layout(
    spec: Spec, grid: Grid, across: Axis | None, down: Axis | None, backend: Backend = "torchvision"
) -> tuple[Any, ...]:
    """What ``fill`` has to know of a clip: tokens and patches, both filters, how to normalise."""
    shape = (spec.temporal_patch_size, spec.merge_size, grid.h // spec.merge_size, grid.w)
    constants = np.concatenate(shift_and_scale(spec, backend))
    return shape, tuple(_filter(across, TAPS_A_LOAD)), tuple(_filter(down, 2)), constants


def _filter(axis: Axis | None, multiple: int) -> Filter:
    """The taps padded to a multiple, so that they can be taken several at a time."""
    if axis is None:
        return Filter(np.empty(0, np.int32), np.empty((0, 0), np.int16), np.int32(0))
    padded = np.zeros((len(axis.starts), -(-axis.taps // multiple) * multiple), np.int16)
    padded[:, : axis.taps] = axis.weights
    return Filter(axis.starts, padded, np.int32(axis.precision))


def scratch(spec: Spec, source_width: int, target_width: int, across: Axis | None, down: Axis | None) -> Scratch:
    """Room for any unit of a clip."""
    rows = spec.factor
    if down is not None:
        # The rows between the first that the top row of a unit looks at and the last of its bottom row.
        rows = int((down.starts[rows - 1 :: rows] - down.starts[::rows]).max()) + down.taps + 1
    spare = 3 * (across.taps + TAPS_A_LOAD) if across is not None else 0
    return Scratch(
        np.zeros(3 * source_width + spare + 16, np.uint8),
        np.zeros((rows + 1, target_width), np.uint32),
        np.empty((3, rows, spec.patch_size), np.uint32),
    )


@cache
def compile_fill(patch: int, kind: str, rescale: float | None = None) -> Callable[..., None]:
    """Compile ``fill`` for one size of patch and one kind of value: seconds, once a process.

    ``rescale`` is for frames that have their size already, as :func:`lanes.strip` has it.

    The result is called as ``fill(frames, units, layout, out, scratch)``:

    frames
        (T, H, W, 3) uint8; the pixels of a row packed, rows and frames anywhere.
    units
        first and one past the last, tubelet by tubelet, from the top row of tokens down.
    layout
        what :func:`layout` gives.
    out
        (N, D), all patches of the clip; only those of the units are written.
    """
    walk, walk_down = _walk(patch, kind, rescale), _walk_down(patch, kind)
    item_bytes = KINDS[kind][1]

    def fill(frames: Any, units: Any, layout: Any, out: Any, scratch: Any) -> None:
        (tubelet, merge, bands, grid_w), across, down, constants = layout
        height = merge * patch
        patch_bytes = out.shape[1] * item_bytes
        for unit in range(units[0], units[1]):
            top = unit % bands * height
            for slot in range(tubelet):
                number = unit // bands * tubelet + slot
                if number >= frames.shape[0]:
                    break
                # The last frame stands in for those that are missing.
                copies = tubelet - slot if number == frames.shape[0] - 1 else 1
                low, high = top, top + height
                if down[0].size:
                    low, high = down[0][top], down[0][top + height - 1] + down[1].shape[1]
                    high = min(high, frames.shape[1])
                _widen(frames[number], (low, high), across, scratch)
                target = out.ctypes.data + unit * merge * grid_w * patch_bytes + slot * patch * patch * item_bytes
                place = (target, patch_bytes, tubelet, copies)
                if down[0].size:
                    walk_down((top, low, high, merge, grid_w), down, constants, place, scratch)
                else:
                    walk((merge, grid_w), constants, place, scratch)

    signature = types.void(
        types.Array(types.uint8, 4, "A", readonly=True),
        types.UniTuple(types.intp, 2),
        types.Tuple((types.UniTuple(types.intp, 4), _AXIS, _AXIS, types.Array(types.float32, 1, "C"))),
        types.Array(_OUT[kind], 2, "C"),
        types.NamedTuple(
            (types.Array(types.uint8, 1, "C"), types.Array(types.uint32, 2, "C"), types.Array(types.uint32, 3, "C")),
            Scratch,
        ),
    )
    compiled: Callable[..., None] = njit(signature, nogil=True)(fill)
    return compiled


@njit(nogil=True)
def _widen(frame: Any, span: Any, across: Any, scratch: Any) -> None:
    """A span of a frame's rows, filtered to the target's width, into the first of ``scratch.rows``."""
    starts, weights, precision = across
    loads, step = weights.shape[1] // TAPS_A_LOAD, weights.strides[0]
    half = types.int32((1 << precision) >> 1)
    source, target = scratch.line.ctypes.data, scratch.rows.ctypes.data
    for row in range(span[0], span[1]):
        # A copy with room behind it, so that a load may pass the end of the row.
        copy_bytes(source, frame.ctypes.data + row * frame.strides[0], 3 * frame.shape[1])
        at = weights.ctypes.data
        out = scratch.rows[row - span[0]]
        if loads == 0:
            for x in range(0, frame.shape[1], 4):
                spread_pixels(target + 4 * x, source + 3 * x)
        elif loads == 1:  # A constant lets the loop inside be unrolled: half the time.
            for x in range(starts.size):
                out[x] = across_pixel(source + 3 * starts[x], at + x * step, 1, half, precision)
        elif loads == 2:
            for x in range(starts.size):
                out[x] = across_pixel(source + 3 * starts[x], at + x * step, 2, half, precision)
        else:
            for x in range(starts.size):
                out[x] = across_pixel(source + 3 * starts[x], at + x * step, loads, half, precision)
        target += scratch.rows.strides[0]


def _walk(patch: int, kind: str, rescale: float | None) -> Any:
    """Compile the way through the patches of one row of tokens whose rows have their height already."""
    fill_strip = strip(patch, kind, rescale)

    @njit(nogil=True)
    def walk(shape: Any, constants: Any, place: Any, scratch: Any) -> None:
        merge, grid_w = shape
        target, patch_bytes, tubelet, copies = place
        frame_bytes = patch_bytes // (3 * tubelet)
        strip_bytes = frame_bytes // patch
        row_bytes = scratch.rows.strides[0]
        for token in range(grid_w // merge):
            for part in range(merge * merge):
                column = token * merge + part % merge
                source = scratch.rows.ctypes.data + part // merge * patch * row_bytes + 4 * column * patch
                for y in range(patch):
                    fill_strip(
                        source + y * row_bytes,
                        constants.ctypes.data,
                        target + y * strip_bytes,
                        tubelet * frame_bytes,
                        copies,
                        frame_bytes,
                    )
                target += patch_bytes

    return walk


def _walk_down(patch: int, kind: str) -> Any:
    """Compile the way through the patches of one row of tokens that are yet to be filtered down."""
    fill_pairs, fill_strip = pair_rows(patch), strip_down(patch, kind)

    @njit(nogil=True)
    def walk_down(shape: Any, down: Any, constants: Any, place: Any, scratch: Any) -> None:
        top, low, high, merge, grid_w = shape
        starts, weights, precision = down
        target, patch_bytes, tubelet, copies = place
        half = types.int32(1 << (precision - 1))
        frame_bytes = patch_bytes // (3 * tubelet)
        strip_bytes = frame_bytes // patch
        row_bytes = scratch.rows.strides[0]
        pairs, plane_bytes, pair_bytes = scratch.pairs.ctypes.data, scratch.pairs.strides[0], scratch.pairs.strides[1]
        for column in range(grid_w):
            source = scratch.rows.ctypes.data + 4 * column * patch
            for row in range(high - low):
                fill_pairs(pairs + row * pair_bytes, plane_bytes, source + row * row_bytes, row_bytes)
            first = target + (column // merge * merge * merge + column % merge) * patch_bytes
            for row in range(merge * patch):
                fill_strip(
                    pairs + (starts[top + row] - low) * pair_bytes,
                    plane_bytes,
                    weights.ctypes.data + (top + row) * weights.strides[0],
                    weights.shape[1] // 2,
                    half,
                    precision,
                    constants.ctypes.data,
                    first + row // patch * merge * patch_bytes + row % patch * strip_bytes,
                    tubelet * frame_bytes,
                    copies,
                    frame_bytes,
                )

    return walk_down
