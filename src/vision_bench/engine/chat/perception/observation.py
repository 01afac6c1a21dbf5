"""Everything that was measured in the media of one request, and its line in the answer's fixed grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vision_bench.engine.chat.perception.picture import PictureFacts
from vision_bench.engine.chat.perception.shapes import most_at_once
from vision_bench.engine.chat.perception.sound import SoundFacts
from vision_bench.engine.chat.perception.text_on_screen import TextFacts

SoundState = Literal["heard", "withheld", "absent"]
"""``withheld``: the video was sent without ``use_audio_in_video``, so its sound, if any, was not listened to."""


@dataclass(frozen=True, slots=True)
class Observation:
    """``picture`` and ``text`` are None when no picture was sent; ``sound`` is None unless its state is ``heard``."""

    picture: PictureFacts | None
    text: TextFacts | None
    sound: SoundFacts | None
    sound_state: SoundState


def merged(pictures: Sequence[PictureFacts]) -> PictureFacts | None:
    """Several videos or images as one: times follow each other, seconds and counts add up. None for none."""
    if len(pictures) < 2:
        return pictures[0] if pictures else None
    starts = [sum(before.duration_seconds for before in pictures[:place]) for place in range(len(pictures))]
    seen = [picture for picture in pictures if picture.brightness is not None]
    moving = [picture.motion for picture in pictures if picture.motion is not None]
    colours: dict[str, int] = {}
    for picture in pictures:
        colours |= {name: max(count, colours.get(name, 0)) for name, count in picture.colour_counts.items()}
    return PictureFacts(
        frame_count=sum(picture.frame_count for picture in pictures),
        width=pictures[0].width,
        height=pictures[0].height,
        duration_seconds=sum(picture.duration_seconds for picture in pictures),
        black_seconds=sum(picture.black_seconds for picture in pictures),
        frozen_seconds=sum(picture.frozen_seconds for picture in pictures),
        cut_seconds=tuple(s + at for s, picture in zip(starts, pictures, strict=True) for at in picture.cut_seconds),
        flash_seconds=tuple(
            s + at for s, picture in zip(starts, pictures, strict=True) for at in picture.flash_seconds
        ),
        brightness=sum(picture.brightness or 0.0 for picture in seen) / len(seen) if seen else None,
        motion=sum(moving) / len(moving) if moving else None,
        shapes=most_at_once([picture.shapes for picture in pictures]),
        colour_counts=dict(sorted(colours.items())),
        is_black=all(picture.is_black for picture in pictures),
        worth_reading=(),
    )


def measurements(seen: Observation) -> dict[str, Any]:
    """What was measured, by the names that labels use; what could not be measured is not there.

    Numbers are rounded as they are written. ``shapes`` is colour to count.
    """
    found: dict[str, Any] = {}
    picture, sound = seen.picture, seen.sound
    if picture is not None:
        found |= {
            "black_seconds": round(picture.black_seconds, 1),
            "frozen_seconds": round(picture.frozen_seconds, 1),
            "cuts": len(picture.cut_seconds),
            "flashes": len(picture.flash_seconds),
            "shapes": dict(picture.colour_counts),
            "frames": picture.frame_count,
        }
    if seen.text is not None:
        found |= {"texts": len(seen.text.lines), "unread": seen.text.unread_places}
    if sound is not None:
        found |= {
            "speech_seconds": round(sound.speech_seconds, 1),
            "silent_seconds": round(sound.silent_seconds, 1),
            "beeps": len(sound.beep_seconds),
        }
        if sound.loudness_dbfs is not None:
            found["loudness_dbfs"] = round(sound.loudness_dbfs, 1)
    return found


def measured_line(seen: Observation) -> str:
    """``[measured: cuts 1; shapes blue=2 red=3; …]``: the same letters in every language (docs/baseline.md)."""
    return f"[measured: {'; '.join(f'{name} {_written(value)}' for name, value in measurements(seen).items())}]"


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={count}" for name, count in value.items()) or "none"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
