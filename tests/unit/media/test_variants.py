"""A variant differs from its clip in the one thing that its name says."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest

from vision_bench.errors import InvalidMedia
from vision_bench.media.variants import muted, unique


def make_clip(*, rate: int = 44_100, layout: str = "stereo", with_sound: bool = True) -> bytes:
    """One second at 30 frames/s with a 440 Hz tone."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4") as output:
        video = output.add_stream("libx264", rate=30)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        audio = output.add_stream("aac", rate=rate, layout=layout) if with_sound else None
        for number in range(30):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), number * 8, np.uint8), "rgb24")
            frame.pts = number
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        if audio is not None:
            wave = np.sin(np.arange(rate) * 440 * 2 * np.pi / rate).astype(np.float32) * 0.5
            for start in range(0, rate, 1024):
                part = np.repeat(wave[None, start : start + 1024], audio.layout.nb_channels, 0)
                sound = av.AudioFrame.from_ndarray(part, "fltp", layout)
                sound.sample_rate, sound.pts = rate, start
                output.mux(audio.encode(sound))
            output.mux(audio.encode(None))
    return target.getvalue()


def pictures(clip: bytes) -> list[tuple[int | None, bytes]]:
    with av.open(io.BytesIO(clip)) as container:
        return [(frame.pts, frame.to_ndarray().tobytes()) for frame in container.decode(video=0)]


def sound(clip: bytes) -> np.ndarray:
    with av.open(io.BytesIO(clip)) as container:
        return np.concatenate([frame.to_ndarray() for frame in container.decode(audio=0)], axis=1)


@pytest.mark.parametrize(("rate", "layout"), [(44_100, "stereo"), (48_000, "mono")])
def test_muted_keeps_every_frame_and_the_length_of_the_sound(rate: int, layout: str) -> None:
    """Picture bit for bit, as many samples within one AAC frame, and all of them zero."""
    clip = make_clip(rate=rate, layout=layout)
    silent = muted(clip)
    assert pictures(silent) == pictures(clip)
    assert abs(sound(silent).shape[1] - sound(clip).shape[1]) <= 2048
    assert np.abs(sound(clip)).max() > 0.3
    assert np.abs(sound(silent)).max() == 0


def test_unique_changes_sound_and_bytes_but_no_frame() -> None:
    """Each number gives other bytes and other samples; the frames and their times stay."""
    clip = make_clip()
    first, second = unique(clip, 1), unique(clip, 2)
    assert pictures(first) == pictures(second) == pictures(clip)
    assert first != second
    assert sound(first).shape[1] != sound(second).shape[1]
    assert unique(clip, 1) == first


def test_unique_without_sound_still_changes_the_bytes() -> None:
    """A clip with no track to vary gets a free box, which players skip."""
    clip = make_clip(with_sound=False)
    assert unique(clip, 1) != unique(clip, 2)
    assert pictures(unique(clip, 1)) == pictures(clip)


@pytest.mark.parametrize("source", [b"", b"<html>403</html>", make_clip(with_sound=False)])
def test_muted_refuses_what_has_nothing_to_mute(source: bytes) -> None:
    """No video, or no sound track: InvalidMedia, never an empty clip."""
    with pytest.raises(InvalidMedia):
        muted(source)
