"""Small machine routines, written as LLVM vectors for Numba: a target pixel of a row, a strip of a patch.

Numba turns loops into vector code by itself only when the loop is simple. These are not: pixels lie in threes, and each
has its own window and weights. Written as vectors of fixed length they cost a fraction (docs/decisions/0020), and LLVM
picks the instructions of whatever processor it runs on. Nothing here checks an address: every argument named below is
an address or a count of bytes unless it says otherwise, and :mod:`vision_bench.preprocess.compiled` owns the bounds.

A wide pixel is four bytes: red, green, blue, 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

TAPS_A_LOAD = 4
"""Source pixels that :func:`across_pixel` takes at a time. It loads 16 bytes for them, so 4 past the last are read."""

I8, I16, I32, F32, F64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType(), ir.DoubleType()
KINDS = {"float32": (F32, 4), "bfloat16": (I16, 2), "uint8": (I8, 1)}
"""What a patch holds: the type of a value, and its bytes."""

Generated = tuple[Any, Callable[..., Any]]


@intrinsic
def copy_bytes(_typing: Any, _target: Any, _source: Any, _count: Any) -> Generated:
    """Copy ``count`` bytes from ``source`` to ``target``, which do not overlap."""
    signature = types.void(types.intp, types.intp, types.intp)

    def generate(context: Any, build: Any, _signature: Any, args: Sequence[Any]) -> Any:
        target, source, count = args
        cgutils.raw_memcpy(build, _pointer(build, target, I8), _pointer(build, source, I8), count, 1)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def spread_pixels(_typing: Any, _target: Any, _source: Any) -> Generated:
    """Four packed pixels from ``source``, where 16 bytes are read for them, as four wide ones at ``target``."""
    signature = types.void(types.intp, types.intp)

    def generate(context: Any, build: Any, _signature: Any, args: Sequence[Any]) -> Any:
        target, source = args
        order = [at for pixel in range(4) for at in (3 * pixel, 3 * pixel + 1, 3 * pixel + 2, 16)]
        _store(build, _pick(build, _load(build, source, I8, 16), order), target)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def across_pixel(_typing: Any, _source: Any, _weights: Any, _loads: Any, _half: Any, _precision: Any) -> Generated:
    """One wide target pixel, returned, from its window in a row of packed pixels.

    ``source`` is the window's first pixel, ``weights`` its 16-bit weights, ``loads`` how many times four of them there
    are; ``half`` and ``precision`` are numbers: half of one, and the bits after the point, in the weights' scale.
    """
    signature = types.uint32(types.intp, types.intp, types.intp, types.int32, types.int32)

    def generate(_context: Any, build: Any, _signature: Any, args: Sequence[Any]) -> Any:
        source, weights, loads, half, precision = args
        total = cgutils.alloca_once_value(build, _spread(build, half, 4))
        with cgutils.for_range(build, loads) as loop:
            pixels = _load(build, _at(build, source, loop.index, 12), I8, 16)
            factors = _at(build, weights, loop.index, 8)
            grown = build.load(total)
            for pair in (0, 1):
                # Two neighbouring pixels side by side, a channel at a time: (r0 r1) (g0 g1) (b0 b1) (0 0).
                first, nothing = 6 * pair, 16
                order = [at for c in range(3) for at in (first + c, nothing, first + c + 3, nothing)] + [nothing] * 4
                values = build.bitcast(_pick(build, pixels, order), ir.VectorType(I16, 8))
                both = _pair_of_weights(build, build.add(factors, _like(factors, 4 * pair)), 4)
                grown = build.add(grown, _pairs(build, values, both))
            build.store(grown, total)
        pixel = build.trunc(_to_8_bits(build, build.load(total), precision), ir.VectorType(I8, 4))
        return build.bitcast(pixel, I32)

    return signature, generate


def pair_rows(patch: int) -> Any:
    """Make the routine that lays a row of a strip and the row below side by side, so that two taps cost one.

    Returns:
        An intrinsic of ``target``, ``plane_bytes``, ``source``, ``row_bytes``: from ``patch`` wide pixels at ``source``
        and those a row below, red goes to ``target`` as 32-bit numbers, the upper pixel in the lower half; green and
        blue go ``plane_bytes`` further each.
    """

    @intrinsic
    def fill_pairs(_typing: Any, _target: Any, _plane_bytes: Any, _source: Any, _row_bytes: Any) -> Generated:
        signature = types.void(types.intp, types.intp, types.intp, types.intp)

        def generate(context: Any, build: Any, _signature: Any, args: Sequence[Any]) -> Any:
            target, plane_bytes, source, row_bytes = args
            upper = _load(build, source, I32, patch)
            lower = _load(build, build.add(source, row_bytes), I32, patch)
            for c in range(3):
                below = build.shl(_channel(build, lower, c), _all(16, patch))
                _store(build, build.or_(_channel(build, upper, c), below), _at(build, target, plane_bytes, c))
            return context.get_dummy_value()

        return signature, generate

    return fill_pairs


def strip(patch: int, kind: str, rescale: float | None = None) -> Any:
    """Make the routine that fills one row of one patch, all three channels of it, from a row that is there already.

    Args:
        rescale: bring values to 0..1 by this factor first, in float64, as the PIL-backed processors do.

    Returns:
        An intrinsic of ``source`` (``patch`` wide pixels), ``constants`` (six float32: shift and scale of red, green,
        blue), ``target``, ``channel_bytes`` from a channel to the next, ``copies`` (a number: how often to write it)
        and ``copy_bytes`` from one of those to the next.
    """

    @intrinsic
    def fill_strip(
        _typing: Any, _source: Any, _constants: Any, _target: Any, _channel_bytes: Any, _copies: Any, _copy_bytes: Any
    ) -> Generated:
        signature = types.void(types.intp, types.intp, types.intp, types.intp, types.intp, types.intp)

        def generate(context: Any, build: Any, _signature: Any, args: Sequence[Any]) -> Any:
            source, constants, *place = args
            pixels = _load(build, source, I32, patch)
            channels = [_channel(build, pixels, c) for c in range(3)]
            _write(build, channels, kind, constants, place, rescale)
            return context.get_dummy_value()

        return signature, generate

    return fill_strip


def strip_down(patch: int, kind: str) -> Any:
    """Make the routine that fills one row of one patch from the source rows in its window.

    Returns:
        An intrinsic of ``source`` and ``plane_bytes`` as :func:`pair_rows` wrote them, ``weights`` (16 bits a tap),
        ``pairs`` of taps, ``half`` and ``precision`` (numbers), then all of :func:`strip` from ``constants`` on.
    """

    @intrinsic
    def fill_strip(
        _typing: Any,
        _source: Any,
        _plane_bytes: Any,
        _weights: Any,
        _pairs_of_taps: Any,
        _half: Any,
        _precision: Any,
        _constants: Any,
        _target: Any,
        _channel_bytes: Any,
        _copies: Any,
        _copy_bytes: Any,
    ) -> Generated:
        where, number = types.intp, types.int32
        signature = types.void(where, where, where, where, number, number, where, where, where, where, where)

        def generate(context: Any, build: Any, _signature: Any, args: Sequence[Any]) -> Any:
            source, plane_bytes, weights, pairs, half, precision, constants, *place = args
            totals = [cgutils.alloca_once_value(build, _spread(build, half, patch)) for _ in range(3)]
            with cgutils.for_range(build, pairs) as loop:
                both = _pair_of_weights(build, _at(build, weights, loop.index, 4), patch)
                rows = _at(build, source, loop.index, 2 * 4 * patch)
                for c, total in enumerate(totals):
                    values = _load(build, _at(build, rows, plane_bytes, c), I16, 2 * patch)
                    build.store(build.add(build.load(total), _pairs(build, values, both)), total)
            channels = [_to_8_bits(build, build.load(total), precision) for total in totals]
            _write(build, channels, kind, constants, place, None)
            return context.get_dummy_value()

        return signature, generate

    return fill_strip


def _write(  # noqa: PLR0917
    build: Any, channels: Sequence[Any], kind: str, constants: Any, place: Sequence[Any], rescale: float | None
) -> None:
    """Finish the three channels of a strip and write them, once a copy."""
    target, channel_bytes, copies, copy_bytes_each = place
    finished = [_finish(build, values, c, constants, kind, rescale) for c, values in enumerate(channels)]
    with cgutils.for_range(build, copies) as loop:
        here = build.add(target, build.mul(loop.index, copy_bytes_each))
        for c, values in enumerate(finished):
            _store(build, values, _at(build, here, channel_bytes, c))


def _finish(  # noqa: PLR0917
    build: Any, values: Any, channel: int, constants: Any, kind: str, rescale: float | None
) -> Any:
    """0 to 255 as what is asked for: (value - shift) / scale in float32, rounded on to bfloat16, or left alone."""
    lanes = values.type.count
    if kind == "uint8":
        return build.trunc(values, ir.VectorType(I8, lanes))
    shift, scale = (
        _spread(build, build.load(_pointer(build, build.add(constants, _like(constants, 4 * at)), F32)), lanes)
        for at in (channel, 3 + channel)
    )
    # A real subtraction and a real division, as in the reference: multiplying by the inverse gives other bits.
    exact = build.fdiv(build.fsub(_as_float(build, values, rescale), shift), scale)
    if kind == "float32":
        return exact
    bits = build.bitcast(exact, ir.VectorType(I32, lanes))
    one, most, sixteen = (_all(number, lanes) for number in (1, 0x7FFF, 16))
    to_even = build.add(build.add(bits, most), build.and_(build.lshr(bits, sixteen), one))
    return build.trunc(build.lshr(to_even, sixteen), ir.VectorType(I16, lanes))


def _as_float(build: Any, values: Any, rescale: float | None) -> Any:
    """Whole numbers as float32, times ``rescale`` where there is one; that product is rounded once, from float64."""
    lanes = values.type.count
    single = ir.VectorType(F32, lanes)
    if rescale is None:
        return build.sitofp(values, single)
    double = ir.VectorType(F64, lanes)
    factor = ir.Constant(double, [rescale] * lanes)
    return build.fptrunc(build.fmul(build.sitofp(values, double), factor), single)


def _channel(build: Any, pixels: Any, channel: int) -> Any:
    """The values of one channel of wide pixels, in 32 bits."""
    lanes = pixels.type.count
    return build.and_(build.lshr(pixels, _all(8 * channel, lanes)), _all(255, lanes))


def _pair_of_weights(build: Any, address: Any, lanes: int) -> Any:
    """Two neighbouring 16-bit weights, again and again."""
    both = build.load(_pointer(build, address, I32), align=2)
    return build.bitcast(_spread(build, both, lanes), ir.VectorType(I16, 2 * lanes))


def _pairs(build: Any, values: Any, factors: Any) -> Any:
    """Sums of neighbouring products: 16-bit numbers to half as many of 32. LLVM knows the instruction (pmaddwd)."""
    lanes = values.type.count
    wide = ir.VectorType(I32, lanes)
    products = build.mul(build.sext(values, wide), build.sext(factors, wide))
    even, odd = (
        build.shuffle_vector(products, products, ir.Constant(ir.VectorType(I32, lanes // 2), list(range(at, lanes, 2))))
        for at in (0, 1)
    )
    return build.add(even, odd)


def _to_8_bits(build: Any, total: Any, precision: Any) -> Any:
    """Cut off the bits after the point and hold to 0..255, still in 32 bits."""
    lanes = total.type.count
    value = build.ashr(total, _spread(build, precision, lanes))
    low, high = _all(0, lanes), _all(255, lanes)
    value = build.select(build.icmp_signed("<", value, low), low, value)
    return build.select(build.icmp_signed(">", value, high), high, value)


def _pick(build: Any, vector: Any, order: Sequence[int]) -> Any:
    """Bytes of ``vector`` in a new order; an index past its end is a zero."""
    zeros = ir.Constant(vector.type, [0] * vector.type.count)
    return build.shuffle_vector(vector, zeros, ir.Constant(ir.VectorType(I32, len(order)), list(order)))


def _spread(build: Any, scalar: Any, lanes: int) -> Any:
    """The same number in every lane."""
    one = build.insert_element(ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined), scalar, I32(0))
    return build.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def _all(number: int, lanes: int) -> Any:
    return ir.Constant(ir.VectorType(I32, lanes), [number] * lanes)


def _like(value: Any, number: int) -> Any:
    return ir.Constant(value.type, number)


def _at(build: Any, address: Any, count: Any, each: int) -> Any:
    """``address`` and ``count`` times ``each`` bytes."""
    return build.add(address, build.mul(count, _like(count, each)))


def _pointer(build: Any, address: Any, to: Any) -> Any:
    return build.inttoptr(address, to.as_pointer())


def _load(build: Any, address: Any, item: Any, lanes: int) -> Any:
    return build.load(_pointer(build, address, ir.VectorType(item, lanes)), align=1)


def _store(build: Any, vector: Any, address: Any) -> None:
    build.store(vector, _pointer(build, address, vector.type), align=1)
