"""A clip with fewer lines, a shorter length or a black picture, in memory: what an envelope sends in the clip's place.

Sound packets are copied as they are. The picture is encoded anew at a quality at which the number of lines, not the
encoder, decides what can still be seen.
"""

from __future__ import annotations

import io
from typing import Any

import av
from av.codec.context import Flags

from vision_bench.errors import InvalidMedia
from vision_bench.media.blackout import black_frame
from vision_bench.media.container import open_media, reason_of
from vision_bench.media.encoders import choose_encoder
from vision_bench.media.probe import probe
from vision_bench.media.tracks import require_picture

_TIME_TOLERANCE = 1e-6
_QUALITY = "17"
"""x264's constant rate factor; 18 is usually called visually lossless."""


def shrink(
    source: bytes, *, height: int | None = None, seconds: float | None = None, is_black: bool = False, name: str
) -> bytes:
    """The clip with at most ``height`` lines, its first ``seconds``, or all black; itself where that changes nothing.

    Never enlarged. The width follows, even; frames keep their times.

    Raises:
        InvalidMedia: no picture, a turned one, or one that cannot be decoded.
    """
    info = probe(source, name=name)
    track = require_picture(info)
    lines = track.height if height is None else min(height, track.height)
    is_shorter = seconds is not None and seconds < track.duration_seconds
    if lines == track.height and not is_shorter and not is_black:
        return source
    if track.rotation or track.is_mirrored:
        raise InvalidMedia(f"{name} is shown turned by {track.rotation} degrees; cut it with `vision-bench prepare`")
    width = max(2, round(track.width * lines / track.height / 2) * 2)
    try:
        return _encoded(source, (width, max(2, lines & ~1)), seconds if is_shorter else None, is_black=is_black)
    except av.error.FFmpegError as problem:
        raise InvalidMedia(f"{name}: cannot be made smaller ({reason_of(problem)})") from problem


def _encoded(source: bytes, size: tuple[int, int], seconds: float | None, *, is_black: bool) -> bytes:
    width, height = size
    target = io.BytesIO()
    encoder = choose_encoder("libx264")
    # The source stays open while the copy is written: a template stream dies with its container.
    with open_media(source) as container, av.open(target, "w", format="mp4") as sink:
        picture = container.streams.video[0]
        out: Any = sink.add_stream(encoder.name, rate=picture.average_rate)
        out.width, out.height, out.pix_fmt = width, height, "yuv420p"
        out.codec_context.time_base = picture.time_base
        out.codec_context.flags |= Flags.frame_duration
        out.options = {**encoder.options, "crf": _QUALITY, "threads": "1"}
        copies = {stream.index: sink.add_stream_from_template(stream) for stream in container.streams.audio}
        black = black_frame(width, height) if is_black else None
        for packet in container.demux(picture, *container.streams.audio):
            if packet.stream_index not in copies:
                for frame in packet.decode():
                    if _is_within(frame, picture, seconds):
                        sink.mux(out.encode(_formed(frame, width, height, black)))
            elif packet.size and _is_within(packet, packet.stream, seconds):
                packet.stream = copies[packet.stream_index]
                sink.mux(packet)
        sink.mux(out.encode(None))
    return target.getvalue()


def _is_within(piece: Any, stream: Any, seconds: float | None) -> bool:
    """Whether a frame or packet is shown before so many seconds of its stream have passed."""
    if piece.pts is None:
        return False
    return (
        seconds is None or float((piece.pts - (stream.start_time or 0)) * stream.time_base) < seconds - _TIME_TOLERANCE
    )


def _formed(frame: Any, width: int, height: int, black: Any) -> Any:
    made = black
    if made is None:
        made = frame.reformat(width=width, height=height, format="yuv420p", interpolation="AREA")
        made.pict_type = 0  # the decoder's own kinds of frame are no orders to the encoder
    made.pts, made.duration, made.time_base = frame.pts, frame.duration, frame.time_base
    return made
