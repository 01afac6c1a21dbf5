"""A copy of a clip with the picture black and the sound untouched, packet for packet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
from av.codec.context import Flags

from vision_bench.drafts import replacing
from vision_bench.errors import InvalidMedia
from vision_bench.media.container import open_media, reason_of, writable
from vision_bench.media.encoders import Encoder
from vision_bench.media.manifest import file_hash
from vision_bench.media.probe import probe
from vision_bench.media.program import black_out

BLACKOUT_BITRATE = 300_000
_BLACK_LUMA, _BLACK_CHROMA = 16, 128


def make_blackout(clip: Path, folder: Path, encoder: Encoder) -> dict[str, Any]:
    """Write ``folder/<clip's name>``; returns its manifest entry.

    Raises:
        InvalidMedia: the copy cannot be made, or its frames or sound packets are not the clip's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / clip.name
    try:
        with replacing(final) as draft:
            if encoder.program is not None:
                black_out(clip, draft, encoder, BLACKOUT_BITRATE, clip.name)
            else:
                with writable(draft) as target:
                    _write_black(clip, target, encoder)
            before, after = probe(clip), probe(draft)
            assert before.video is not None and after.video is not None  # noqa: S101  both hold a picture
            if sound_packets(clip) != sound_packets(draft) or before.video.frames != after.video.frames:
                raise InvalidMedia(
                    f"{clip.name}: the black copy does not hold the clip's own frames and sound; cut it again"
                )
    except av.error.FFmpegError as problem:
        raise InvalidMedia(f"{clip.name}: the black copy cannot be made ({reason_of(problem)})") from problem
    return {
        "file": final.name,
        "frames": after.video.frames,
        "bytes": after.size_bytes,
        "sha256": file_hash(final),
        "has_audio": after.has_audio,
    }


def sound_packets(path: Path) -> list[bytes]:
    """Every sound packet of ``path``, in order."""
    with open_media(path) as container:
        sounds = container.streams.audio
        return [bytes(packet) for packet in container.demux(sounds) if packet.size] if sounds else []


def picture_times(path: Path) -> list[tuple[int, int]]:
    """When and for how long each frame of the first picture track is shown, in its ticks, ascending."""
    with open_media(path) as container:
        return sorted(
            (packet.pts, packet.duration or 0)
            for packet in container.demux(container.streams.video[0])
            if packet.size and packet.pts is not None and not packet.is_discard
        )


def _write_black(clip: Path, target: str, encoder: Encoder) -> None:
    with open_media(clip) as container, av.open(target, "w", format="mp4", options={"movflags": "+faststart"}) as sink:
        picture = container.streams.video[0]
        out: Any = sink.add_stream(encoder.name, rate=picture.average_rate)
        out.width, out.height, out.pix_fmt = picture.width, picture.height, "yuv420p"
        out.codec_context.time_base = picture.time_base
        if picture.sample_aspect_ratio:
            out.codec_context.sample_aspect_ratio = picture.sample_aspect_ratio
        out.codec_context.flags |= Flags.frame_duration
        out.bit_rate, out.options = BLACKOUT_BITRATE, dict(encoder.options)
        copies = {stream.index: sink.add_stream_from_template(stream) for stream in container.streams.audio}
        black = black_frame(picture.width, picture.height)
        # Asked for no stream at all, demux would give every stream.
        for packet in container.demux(*container.streams.audio) if copies else ():
            if packet.size:
                packet.stream = copies[packet.stream_index]
                sink.mux(packet)
        for pts, duration in picture_times(clip):
            black.pts, black.duration, black.time_base = pts, duration, picture.time_base
            sink.mux(out.encode(black))
        sink.mux(out.encode(None))


def black_frame(width: int, height: int) -> av.VideoFrame:
    """A yuv420p frame of nothing but black."""
    frame = av.VideoFrame(width, height, "yuv420p")
    for plane, value in zip(frame.planes, (_BLACK_LUMA, _BLACK_CHROMA, _BLACK_CHROMA), strict=True):
        plane.update(bytes([value]) * plane.buffer_size)
    return frame
