"""Read a cut of a broadcast back: which frames it holds, and how far sound and picture have come apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from vision_bench.media.broadcast.sound import BEEP_HZ, BEEP_PEAK, BEEP_SECONDS
from vision_bench.media.broadcast.stamp import Stamp, lamp_is_lit, read_stamp
from vision_bench.media.container import open_media

LISTEN_RATE = 16000
LISTEN_BLOCK_SECONDS = 60
PAIRED_WITHIN_SECONDS = 0.25  # marks of one broadcast lie further apart than twice this

LIKENESS = 0.75  # share of the energy that is the tone; speech and crowd stay below 0.5
LOUDNESS = 0.4 * BEEP_PEAK


@dataclass(frozen=True, slots=True)
class ClipCheck:
    """What a clip holds. Frame numbers are the source's; seconds are the clip's own. None: cannot be told."""

    frames: int
    unread: int
    """Frames whose stamp cannot be read, not counting the lead, which has none."""
    foreign: int
    """Frames stamped by another genre than the labels'."""
    breaks: int
    """Places where the frame number does not go up by one: a frame lost, repeated or out of order."""
    first_frame: int | None
    last_frame: int | None
    expected_first_frame: int | None
    expected_frames: int | None
    flashes_seconds: tuple[float, ...]
    beeps_seconds: tuple[float, ...]
    av_offsets_ms: tuple[float, ...]
    """Beep minus flash of each pair: positive when sound comes late."""

    def faults(self, *, max_offset_ms: float = 20.0) -> list[str]:
        """What is wrong, in words; empty when all is well."""
        found = []
        if self.unread:
            found.append(f"{self.unread} of {self.frames} frames carry no readable stamp")
        if self.foreign:
            found.append(f"{self.foreign} frames come from another broadcast")
        if self.breaks:
            found.append(f"{self.breaks} places where a frame is lost or repeated")
        if self.expected_first_frame is not None and self.first_frame != self.expected_first_frame:
            found.append(f"starts with frame {self.first_frame}, not {self.expected_first_frame}")
        if self.expected_frames is not None and self.frames != self.expected_frames:
            found.append(f"holds {self.frames} frames, not {self.expected_frames}")
        late = [offset for offset in self.av_offsets_ms if abs(offset) > max_offset_ms]
        if late:
            found.append(f"sound is off by {max(late, key=abs):.1f} ms, more than {max_offset_ms:g} ms")
        return found

    def as_json(self) -> dict[str, Any]:
        """Every field, for a JSON object."""
        return asdict(self)


def check_clip(clip: Path, labels: Mapping[str, Any]) -> ClipCheck:
    """Read every stamp and mark of ``clip``.

    Args:
        clip: a broadcast, or a cut of one. Named like the film or like one of the labels' windows, it is held to
            that one's frames.
        labels: the broadcast's label file.

    Raises:
        InvalidMedia: not a media file.
    """
    stamps, flashes = _look(clip)
    beeps = _listen(clip)
    read = [stamp for stamp in stamps if stamp is not None]
    promised = _promised(clip, labels)
    unstamped = labels["lead_frames"] if clip.name == labels["film"] else 0
    return ClipCheck(
        frames=len(stamps),
        unread=len(stamps) - len(read) - unstamped,
        foreign=sum(stamp.genre_number != labels["genre_number"] for stamp in read),
        breaks=sum(later.frame != earlier.frame + 1 for earlier, later in pairwise(read)),
        first_frame=read[0].frame if read else None,
        last_frame=read[-1].frame if read else None,
        expected_first_frame=promised[0] if promised else None,
        expected_frames=promised[1] if promised else None,
        flashes_seconds=tuple(flashes),
        beeps_seconds=tuple(beeps),
        av_offsets_ms=tuple(_offsets_ms(flashes, beeps)),
    )


def _promised(clip: Path, labels: Mapping[str, Any]) -> tuple[int, int] | None:
    """First stamped frame and number of frames that the labels promise of a file of that name."""
    if clip.name == labels["film"]:
        return labels["lead_frames"], labels["frames"]
    return next(((it["first_frame"], it["frames"]) for it in labels["windows"] if it["clip"] == clip.stem), None)


def _offsets_ms(flashes: Sequence[float], beeps: Sequence[float]) -> list[float]:
    pairs = ((flash, min(beeps, key=lambda beep: abs(beep - flash))) for flash in flashes if beeps)
    return [round(1000 * (beep - flash), 2) for flash, beep in pairs if abs(beep - flash) < PAIRED_WITHIN_SECONDS]


def _look(clip: Path) -> tuple[list[Stamp | None], list[float]]:
    """Every frame's stamp, and the seconds at which the lamp goes on."""
    stamps: list[Stamp | None] = []
    flashes: list[float] = []
    # A clip that begins with the lamp lit does not show when it went on.
    was_lit = True
    with open_media(clip) as container:
        if not container.streams.video:
            return [], []
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for frame in container.decode(stream):
            luma = _luma(frame)
            stamps.append(read_stamp(luma))
            is_lit = lamp_is_lit(luma)
            if is_lit and not was_lit and frame.time is not None:
                flashes.append(round(frame.time, 5))
            was_lit = is_lit
    return stamps, flashes


def _luma(frame: av.VideoFrame) -> NDArray[np.uint8]:
    plane = frame.planes[0]
    rows: NDArray[np.uint8] = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
    return rows[:, : plane.width]


def _listen(clip: Path) -> list[float]:
    """The seconds at which beeps start."""
    resampler = AudioResampler(format="flt", layout="mono", rate=LISTEN_RATE)
    pieces: list[NDArray[np.float32]] = []
    start_seconds = 0.0
    with open_media(clip) as container:
        if not container.streams.audio:
            return []
        for frame in container.decode(container.streams.audio[0]):
            if not pieces:
                start_seconds = frame.time or 0.0
            pieces += [np.asarray(piece.to_ndarray(), np.float32).reshape(-1) for piece in resampler.resample(frame)]
    if not pieces:
        return []
    return [round(start_seconds + at, 5) for at in find_beeps(np.concatenate(pieces), LISTEN_RATE)]


def find_beeps(samples: NDArray[np.float32], rate: int) -> list[float]:
    """The seconds at which the marks' tone starts in (N,) mono ``samples``, to about a millisecond.

    A tone of the mark's length that starts at a sample gathers most energy at 1 kHz there: the place of that maximum is
    the start. It counts where the tone is nearly all that sounds.
    """
    length = round(BEEP_SECONDS * rate)
    starts: list[float] = []
    block = LISTEN_BLOCK_SECONDS * rate
    for first in range(0, max(0, len(samples) - length), block):
        # Blocks overlap by two tones, so that one which lies across an edge is whole in one of them.
        part = samples[first : first + block + 2 * length].astype(np.float64)
        for at in _tone_starts(part, rate, length):
            seconds = (first + at) / rate
            if not starts or seconds - starts[-1] > BEEP_SECONDS:
                starts.append(seconds)
    return starts


def _tone_starts(part: NDArray[np.float64], rate: int, length: int) -> list[int]:
    if len(part) <= length:
        return []
    turned = part * np.exp(-2j * np.pi * BEEP_HZ / rate * np.arange(len(part)))
    tone = np.abs(_window_sums(turned, length))
    energy = _window_sums(part**2, length)
    likeness = tone * np.sqrt(2 / length) / np.sqrt(np.maximum(energy, 1e-12))
    is_tone = (likeness > LIKENESS) & (tone * 2 / length > LOUDNESS)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_tone, [False]]).astype(np.int8)))
    return [int(begin + np.argmax(tone[begin:end])) for begin, end in edges.reshape(-1, 2)]


def _window_sums(values: NDArray[Any], length: int) -> NDArray[Any]:
    """Sums of every ``length`` neighbours: (N,) to (N - length + 1,)."""
    sums = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(sums[length:] - sums[:-length])
