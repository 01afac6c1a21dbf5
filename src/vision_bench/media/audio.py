"""Decode sound to mono samples at a rate."""

from __future__ import annotations

from pathlib import Path

import av
import av.error
import numpy as np
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from vision_bench.errors import InvalidMedia
from vision_bench.media.container import READING_ENDS, display_name, open_media


def decode_audio(source: Path | bytes, *, rate: int = 16000) -> NDArray[np.float32] | None:
    """The first sound track that holds packets, mixed down to one channel.

    Args:
        source: a file, or its bytes.
        rate: samples a second of the result.

    Returns:
        (N,) float32 in [-1, 1], from the track's own first sample on; None when there is no sound track, or only
        tracks that hold no packets. A track that is damaged in part gives the samples that survive.

    Raises:
        InvalidMedia: not a media file, or a track of which nothing can be decoded.
    """
    with open_media(source) as container:
        track_count = len(container.streams.audio)
    has_packets = False
    for track in range(track_count):
        samples, track_has_packets = _decode_track(source, track, rate)
        has_packets = has_packets or track_has_packets
        if samples.size:
            return samples
    if has_packets:
        name = display_name(source) if isinstance(source, Path) else "<bytes>"
        raise InvalidMedia(f"{name}: the sound cannot be decoded; copy or record it again")
    return None


def _decode_track(source: Path | bytes, track: int, rate: int) -> tuple[NDArray[np.float32], bool]:
    """The samples of one track, and whether it held any packet."""
    resampler = AudioResampler(format="flt", layout="mono", rate=rate)
    pieces: list[NDArray[np.float32]] = []
    has_packets = False
    with open_media(source) as container:
        stream = container.streams.audio[track]
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
            except (StopIteration, *READING_ENDS):
                break
            has_packets = has_packets or packet.size > 0
            try:
                frames = packet.decode()
            except av.error.FFmpegError:
                continue
            for frame in frames:
                try:
                    pieces += [_mono(out) for out in resampler.resample(frame)]
                except (ValueError, av.error.FFmpegError):  # the track's form changes here: begin anew
                    pieces += [_mono(out) for out in resampler.resample(None)]
                    resampler = AudioResampler(format="flt", layout="mono", rate=rate)
                    pieces += [_mono(out) for out in resampler.resample(frame)]
        if pieces:
            pieces += [_mono(out) for out in resampler.resample(None)]
    joined = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)
    return np.clip(joined, -1.0, 1.0), has_packets


def _mono(frame: av.AudioFrame) -> NDArray[np.float32]:
    return frame.to_ndarray().reshape(-1).astype(np.float32, copy=False)
