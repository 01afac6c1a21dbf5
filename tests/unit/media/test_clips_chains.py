"""What is done to picture and sound, as filter text; names as an ffmpeg argument; bit rates."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from vision_bench.errors import InvalidRequest, MissingExtra, UnknownName
from vision_bench.media import encoders
from vision_bench.media.chains import as_text, form_steps, sound_steps, turn_steps
from vision_bench.media.container import display_name
from vision_bench.media.encoders import choose_encoder, parse_bitrate
from vision_bench.media.program import file_argument
from vision_bench.media.tracks import AudioTrack, VideoTrack


def track(**changes: Any) -> VideoTrack:
    values: dict[str, Any] = {
        "index": 0,
        "codec": "h264",
        "width": 320,
        "height": 240,
        "rotation": 0,
        "pix_fmt": "yuv420p",
        "frames": 30,
        "fps": Fraction(30),
        "is_constant_rate": True,
        "start_seconds": 0.0,
        "duration_seconds": 1.0,
        "sample_aspect": None,
        "is_interlaced": False,
    }
    return VideoTrack(**(values | changes))


def test_a_picture_of_the_right_form_is_left_alone() -> None:
    """No filter: decoded frames go to the encoder untouched."""
    assert form_steps(track()) == []
    assert turn_steps(track()) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"width": 321}, "crop=w=trunc(iw/2)*2:h=trunc(ih/2)*2:x=0:y=0"),
        ({"pix_fmt": "yuv444p"}, "scale=out_range=tv,format=yuv420p"),
        ({"is_full_range": True}, "scale=out_range=tv,format=yuv420p"),
        ({"is_interlaced": True}, "bwdif=mode=send_frame:parity=auto:deint=interlaced"),
    ],
)
def test_what_is_not_of_the_form_is_brought_to_it(changes: dict[str, Any], text: str) -> None:
    """Even, 4:2:0, video range, progressive with one frame for one."""
    assert as_text(form_steps(track(**changes))) == text


@pytest.mark.parametrize(
    ("rotation", "text"), [(90, "transpose=clock"), (180, "hflip,vflip"), (270, "transpose=cclock")]
)
def test_turns(rotation: int, text: str) -> None:
    """Clockwise, as the probe says."""
    assert as_text(turn_steps(track(rotation=rotation))) == text
    assert as_text(turn_steps(track(rotation=rotation, is_mirrored=True))) == f"vflip,{text}"


def test_sound_starts_at_zero_and_never_drifts() -> None:
    """Cut in seconds of the container's clock, holes filled, a rate that AAC knows."""
    steps = dict(sound_steps(AudioTrack(1, "flac", 192_000, 8, None, 9, 0.0, 9.0), 6.006, 12.012))
    assert steps["atrim"] == "start=6.006000:end=12.012000"
    assert steps["asetpts"] == "PTS-6.006000/TB"
    assert steps["aresample"].startswith("48000:async=1:")
    assert steps["aformat"] == "sample_fmts=fltp:sample_rates=48000:channel_layouts=stereo"


@pytest.mark.parametrize(
    ("channels", "layout"), [(1, "mono"), (2, "stereo"), (3, "3.0"), (4, "4.0"), (5, "5.0"), (6, "5.1"), (7, "stereo")]
)
def test_sound_always_gets_a_named_layout(channels: int, layout: str) -> None:
    """AVI and ASF store a count alone, and AAC refuses channels that nobody named."""
    steps = dict(sound_steps(AudioTrack(1, "pcm_s16le", 48_000, channels, None, 9, 0.0, 9.0), 0.0, 6.0))
    assert steps["aformat"].endswith(f":channel_layouts={layout}")


@pytest.mark.parametrize(
    ("text", "bits"), [("1500k", 1_500_000), ("1.5M", 1_500_000), ("300K", 300_000), ("800000", 800_000)]
)
def test_bit_rates(text: str, bits: int) -> None:
    """As ffmpeg spells them."""
    assert parse_bitrate(text) == bits


@pytest.mark.parametrize("text", ["", "fast", "-5k", "12", "1e6", "0k"])
def test_what_is_no_bit_rate(text: str) -> None:
    """Refused with the forms that are understood."""
    with pytest.raises(InvalidRequest, match=r"write 1500k, 1\.5M or 1500000"):
        parse_bitrate(text)


def test_an_unknown_encoder_names_the_known() -> None:
    """Nothing is run for it."""
    with pytest.raises(UnknownName, match="'h265'; choose one of: auto, libopenh264, libx264"):
        choose_encoder("h265")


def test_without_the_extra_the_library_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """``auto`` is then libx264 inside PyAV; asking for libopenh264 names the install line."""
    monkeypatch.setattr(encoders, "find_ffmpeg", lambda: None)
    chosen = choose_encoder("auto")
    assert (chosen.name, chosen.program) == ("libx264", None)
    assert chosen.version.startswith("PyAV ")
    with pytest.raises(MissingExtra, match=r"pip install 'vision-bench\[ffmpeg\]'"):
        choose_encoder("libopenh264")


def test_a_path_is_never_an_option_or_a_protocol() -> None:
    """``file:`` and the whole path in front, its bytes as they are."""
    assert file_argument(Path("/d/-a:b%d\udcff.mp4")) == b"file:/d/-a:b%d\xff.mp4"


def test_a_name_can_be_printed() -> None:
    """Line breaks, control characters and stray bytes appear as escapes; Korean stays."""
    assert display_name(Path("/x/뉴스 \n\x1b\udcff.mp4")) == "뉴스 \\n\\x1b\\udcff.mp4"
