"""What a media file holds, as ``probe`` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from vision_bench.errors import InvalidMedia


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The picture track. ``width`` and ``height`` are as shown, after ``rotation``; pixels need not be square.

    Attributes:
        index: stream index in the container.
        rotation: degrees clockwise (0, 90, 180, 270) to turn a decoded frame so that it stands upright.
        is_mirrored: a decoded frame must first be flipped top to bottom, then turned.
        is_full_range: luma runs from 0 to 255, not from 16 to 235.
        frames: frames that will be shown, counted from packets.
        fps: frames per second: exact when constant, else the mean; None for one frame of unknown length.
        start_seconds: first frame on the container's own clock.
        duration_seconds: first frame to the end of the last.
        sample_aspect: width / height of a pixel as coded; None when not stated.
    """

    index: int
    codec: str
    width: int
    height: int
    rotation: int
    pix_fmt: str
    frames: int
    fps: Fraction | None
    is_constant_rate: bool
    start_seconds: float
    duration_seconds: float
    sample_aspect: Fraction | None
    is_interlaced: bool
    is_mirrored: bool = False
    is_full_range: bool = False


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """A sound track. ``packets`` may be 0: some containers declare a track and never fill it."""

    index: int
    codec: str
    sample_rate: int
    channels: int
    language: str | None
    packets: int
    start_seconds: float
    duration_seconds: float
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """A whole file. Each warning is ``code: sentence``."""

    name: str
    container: str
    size_bytes: int
    duration_seconds: float
    video: VideoTrack | None
    audio: tuple[AudioTrack, ...]
    warnings: tuple[str, ...]

    @property
    def has_audio(self) -> bool:
        """Some sound track holds packets."""
        return any(track.packets for track in self.audio)


def require_picture(info: MediaInfo) -> VideoTrack:
    """The picture track of ``info``, or InvalidMedia that says what the file has instead."""
    if info.video is None:
        kinds = f"{len(info.audio)} sound track{'s' if len(info.audio) != 1 else ''}"
        raise InvalidMedia(f"{info.name}: no picture track, only {kinds}; give a file with a picture")
    return info.video
