"""Small hard media files with known properties, made on the spot.

Each `Case` says what was built and what a cutter must do with it:

- ``ok``: cut as it is; ``normalise``: cut, and changed to the form that every clip has;
- ``warn``: cut, and the run must say what was odd (``warning`` is the code);
- ``reject``: one error that names the file; nothing is left behind.

The program is the one inside imageio-ffmpeg; nothing of the system is used.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import imageio_ffmpeg

Recipe = Callable[["Workshop", Path], None]

X264 = ("-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p")
AAC = ("-c:a", "aac", "-b:a", "96k")
VP9 = ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8")
FAST = ("-movflags", "+faststart")


@dataclass(frozen=True, slots=True)
class Case:
    """One file.

    Attributes:
        seconds: how much of it is cut, from its start.
        frames: those in that range; None where the damage decides.
        width: of the clip, as ``height``.
        warning: the code of what the run must say.
        is_constant_rate: of the clip; None where the damage decides.
    """

    name: str
    handling: str
    recipe: Recipe
    seconds: int = 2
    frames: int | None = 60
    width: int = 160
    height: int = 120
    has_audio: bool = True
    warning: str | None = None
    is_constant_rate: bool | None = True


class Workshop:
    """Runs recipes in a folder; files that several of them start from are made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts = folder / ".parts"
        self._parts.mkdir(parents=True, exist_ok=True)

    def make(self, case: Case) -> Path:
        path = self.folder / case.name
        if not path.exists():
            case.recipe(self, path)
        return path

    def run(self, *arguments: object) -> None:
        program = imageio_ffmpeg.get_ffmpeg_exe()
        command = [program, "-nostdin", "-v", "error", "-y", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-600:]

    def base(self) -> Path:
        """2 s at 30 frames a second with sound."""
        return self._part("base.mp4", lambda path: plain()(self, path))

    def long(self) -> Path:
        """20 s, a key frame every 10 s, B frames, open groups: what careless seeking gets wrong."""
        gop = ("-g", "300", "-keyint_min", "300", "-sc_threshold", "0", "-bf", "3", "-x264-params", "open-gop=1")
        codec = ("-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", *gop)
        return self._part("long.mp4", lambda path: self.run(*picture(20), *sound(20), *codec, *AAC, *FAST, out(path)))

    def subtitles(self) -> Path:
        return self._part(
            "lines.srt",
            lambda path: path.write_text("1\n00:00:00,500 --> 00:00:01,500\n안녕하세요\n", encoding="utf-8"),
        )

    def _part(self, name: str, make: Callable[[Path], object]) -> Path:
        path = self._parts / name
        if not path.exists():
            make(path)
        return path


def out(path: Path) -> str:
    """A path that the program cannot read as an option or a protocol."""
    return f"file:{path}"


def picture(seconds: float = 2, size: str = "160x120", rate: str = "30") -> tuple[str, ...]:
    return "-f", "lavfi", "-i", f"testsrc2=s={size}:r={rate}:d={seconds}"


def sound(seconds: float = 2, pitch_hz: int = 440, rate: int = 48_000) -> tuple[str, ...]:
    return "-f", "lavfi", "-i", f"sine=f={pitch_hz}:r={rate}:d={seconds}:beep_factor=4"


def plain(seconds: float = 2, size: str = "160x120", rate: str = "30") -> Recipe:
    """An ordinary film."""
    return lambda shop, path: shop.run(*picture(seconds, size, rate), *sound(seconds), *X264, *AAC, *FAST, out(path))


def encoded(*codecs: str, seconds: float = 2) -> Recipe:
    """Picture and sound with other codecs."""
    return lambda shop, path: shop.run(*picture(seconds), *sound(seconds), *codecs, out(path))


def copied(*options: str) -> Recipe:
    """The ordinary film in another wrapping."""
    return lambda shop, path: shop.run("-i", shop.base(), "-c", "copy", *options, out(path))


def silent(shop: Workshop, path: Path) -> None:
    silence = ("-f", "lavfi", "-i", "anullsrc=r=48000:cl=stereo", "-t", "2")
    shop.run(*picture(), *silence, *X264, *AAC, *FAST, out(path))


def two_sounds(shop: Workshop, path: Path) -> None:
    tags = ("-metadata:s:a:0", "language=kor", "-metadata:s:a:1", "language=eng")
    maps = ("-map", "0:v", "-map", "1:a", "-map", "2:a")
    shop.run(*picture(), *sound(), *sound(2, 880), *maps, *X264, *AAC, *tags, *FAST, out(path))


def with_subtitles(shop: Workshop, path: Path) -> None:
    codecs = ("-c", "copy", "-c:s", "mov_text", "-timecode", "00:59:58:00")
    shop.run("-i", shop.base(), "-i", shop.subtitles(), "-map", "0", "-map", "1", *codecs, out(path))


def changing_rate(shop: Workshop, path: Path) -> None:
    """2 s at 30, 2 s at 5, 2 s at 24 frames a second."""
    parts = (*picture(2), *picture(2, rate="5"), *picture(2, rate="24"))
    joined = "[0:v]settb=1/600,setpts=PTS[a];[1:v]settb=1/600[b];[2:v]settb=1/600[c];[a][b][c]concat=n=3:v=1[v]"
    timing = ("-fps_mode", "vfr", "-enc_time_base", "1:600")
    shop.run(
        *parts, *sound(6), "-filter_complex", joined, "-map", "[v]", "-map", "3:a", *X264, *timing, *AAC, out(path)
    )


def interlaced(shop: Workshop, path: Path) -> None:
    """What a tuner records: MPEG-2 and AC-3 in a transport stream, 29.97 frames of two fields."""
    weave = "tinterlace=interleave_top,fieldorder=tff,setsar=8/9"
    codecs = ("-c:v", "mpeg2video", "-pix_fmt", "yuv420p", "-b:v", "3M", "-flags", "+ilme+ildct", "-c:a", "ac3")
    source = (*picture(2.002, "320x240", "60000/1001"), *sound(2.002))
    shop.run(*source, "-vf", weave, *codecs, "-f", "mpegts", out(path))


def odd_size(shop: Workshop, path: Path) -> None:
    pad = "format=yuv444p,pad=161:121:1:1,format=yuv420p"
    shop.run(*picture(), *sound(), "-vf", pad, *VP9, "-c:a", "libopus", out(path))


def anamorphic(shop: Workshop, path: Path) -> None:
    shop.run(*picture(size="180x120"), *sound(), "-vf", "setsar=8/9", *X264, *AAC, *FAST, out(path))


def turned(degrees: int) -> Recipe:
    """The ordinary film with a turn written into its header; the pixels stay."""

    def recipe(shop: Workshop, path: Path) -> None:
        data = bytearray(shop.base().read_bytes())
        one = 1 << 16
        for start, header, _ in find_boxes(data, [b"moov", b"trak", b"tkhd"]):
            body = start + header
            width, height = struct.unpack(">II", data[body + 76 : body + 84])
            if width:
                matrix = {90: (0, one, 0, -one, 0, 0, height, 0), 180: (-one, 0, 0, 0, -one, 0, width, height)}[degrees]
                data[body + 40 : body + 76] = struct.pack(">9i", *matrix, 1 << 30)
        path.write_bytes(data)

    return recipe


def first_bytes(share: float, *options: str) -> Recipe:
    """Only the first part of a film's bytes: a broken copy, a power cut."""

    def recipe(shop: Workshop, path: Path) -> None:
        whole = path.with_name(f".whole-{path.name}")
        shop.run("-i", shop.base(), "-c", "copy", *options, out(whole))
        data = whole.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
        whole.unlink()

    return recipe


def damaged(shop: Workshop, path: Path) -> None:
    """Noise over the middle of the picture data; the index is whole."""
    data = bytearray(shop.base().read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4_000] = bytes((7 * i) % 251 for i in range(4_000))
    path.write_bytes(data)


def hole_in_picture(shop: Workshop, path: Path) -> None:
    """No frame between 2 s and 5 s; the sound goes on."""
    keep = "select='not(between(t,2,4.999))'"
    shop.run(*picture(6), *sound(6), "-vf", keep, "-fps_mode", "passthrough", *X264, *AAC, *FAST, out(path))


def still_picture(shop: Workshop, path: Path) -> None:
    shop.run(*picture(1), "-frames:v", "1", "-f", "image2", "-update", "1", "-c:v", "png", out(path))


def still_jpeg(shop: Workshop, path: Path) -> None:
    shop.run(*picture(1), "-frames:v", "1", "-f", "image2", "-update", "1", "-c:v", "mjpeg", out(path))


def cover_art(shop: Workshop, path: Path) -> None:
    """A song with a picture of its record: the picture is not a film."""
    cover = path.with_name(".cover.png")
    still_picture(shop, cover)
    codecs = ("-c:a", "aac", "-c:v", "copy", "-disposition:v:0", "attached_pic")
    shop.run(*sound(), "-i", out(cover), "-map", "0:a", "-map", "1:v", *codecs, out(path))
    cover.unlink()


def words(text: str | bytes) -> Recipe:
    data = text.encode() if isinstance(text, str) else text
    return lambda shop, path: shop.folder.joinpath(path.name).write_bytes(data) and None


def boxes(data: bytes | bytearray, start: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int, int, int]]:
    """MP4 boxes in [start, end): (type, where it starts, header bytes, whole bytes)."""
    end = len(data) if end is None else end
    while start + 8 <= end:
        size, kind = struct.unpack(">I4s", data[start : start + 8])
        header = 8
        if size == 1:
            size, header = struct.unpack(">Q", data[start + 8 : start + 16])[0], 16
        size = size or end - start
        yield kind, start, header, size
        start += size


def find_boxes(
    data: bytes | bytearray, path: list[bytes], start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int, int]]:
    """Boxes at ``path`` such as moov/trak/tkhd: (where it starts, header bytes, whole bytes)."""
    for kind, at, header, size in boxes(data, start, end):
        if kind == path[0]:
            if len(path) == 1:
                yield at, header, size
            else:
                yield from find_boxes(data, path[1:], at + header, at + size)


def has_index_in_front(path: Path) -> bool:
    """The index comes before the pictures, so that a player can start before the whole file is there."""
    order = [kind for kind, *_ in boxes(path.read_bytes())]
    return order.index(b"moov") < order.index(b"mdat")


def _case(name: str, handling: str, recipe: Recipe, **expected: Any) -> Case:
    return Case(name, handling, recipe, **expected)


FTYP_ALONE = struct.pack(">I4s4sI4s4s4s4s", 32, b"ftyp", b"isom", 512, b"isom", b"iso2", b"avc1", b"mp41")
TS = ("-bsf:v", "h264_mp4toannexb", "-output_ts_offset", "3600", "-f", "mpegts")
FRAGMENTS = ("-movflags", "frag_keyframe+empty_moov+default_base_moof")
NO_EDIT_LIST = ("-use_editlist", "0", "-movflags", "+faststart+negative_cts_offsets")

CASES: tuple[Case, ...] = (
    _case("plain.mp4", "ok", plain()),
    # tracks
    _case(
        "no_audio.mp4",
        "warn",
        lambda s, p: s.run(*picture(), *X264, *FAST, out(p)),
        has_audio=False,
        warning="no_audio",
    ),
    _case("silent_audio.mp4", "ok", silent),
    _case("audio_only.mp4", "reject", lambda s, p: s.run(*sound(), *AAC, *FAST, out(p))),
    _case("audio_first.mp4", "ok", encoded("-map", "1:a", "-map", "0:v", *X264, *AAC)),
    _case("two_audio_kor_eng.mp4", "warn", two_sounds, warning="several_sounds"),
    _case("mono_8k.mp4", "ok", lambda s, p: s.run(*picture(), *sound(rate=8000), *X264, "-c:a", "aac", out(p))),
    _case(
        "short_video_long_audio.mp4",
        "warn",
        lambda s, p: s.run(*picture(1), *sound(2), *X264, *AAC, out(p)),
        frames=30,
        warning="picture_ends_early",
    ),
    _case(
        "long_video_short_audio.mp4",
        "warn",
        lambda s, p: s.run(*picture(2), *sound(1), *X264, *AAC, out(p)),
        warning="sound_ends_early",
    ),
    _case("subtitle_and_timecode.mov", "ok", with_subtitles),
    # container
    _case("moov_at_end.mp4", "ok", copied()),
    _case("fragmented.mp4", "ok", copied(*FRAGMENTS)),
    _case(
        "truncated_tail.mp4", "warn", first_bytes(0.6, *FAST), frames=None, warning="truncated", is_constant_rate=None
    ),
    _case("no_moov.mp4", "reject", first_bytes(0.7)),
    _case("empty.mp4", "reject", words("")),
    _case("ftyp_only.mp4", "reject", words(FTYP_ALONE)),
    _case("error_page.mp4", "reject", words("<!doctype html><html><title>403</title>Forbidden</html>\n" * 20)),
    _case("plain.mkv", "normalise", copied()),
    _case("offset_start.ts", "normalise", copied(*TS)),
    _case("broadcast_interlaced.ts", "normalise", interlaced, width=320, height=240, warning="deinterlaced"),
    _case("damaged_middle.mp4", "warn", damaged, frames=None, warning="damaged", is_constant_rate=None),
    # time
    _case("vfr_30_5_24.mp4", "ok", changing_rate, seconds=6, frames=118, is_constant_rate=False),
    _case("hole_in_picture.mp4", "ok", hole_in_picture, seconds=6, frames=90, is_constant_rate=False),
    _case("ntsc_2997.mp4", "ok", plain(2.002, rate="30000/1001")),
    _case("fps_1.mp4", "ok", plain(rate="1"), frames=2),
    _case("fps_120.mp4", "ok", plain(rate="120"), frames=240),
    _case(
        "one_frame.mp4",
        "warn",
        lambda s, p: s.run(*picture(1), "-frames:v", "1", *X264, *FAST, out(p)),
        frames=1,
        has_audio=False,
        warning="short",
    ),
    _case("half_second.mp4", "warn", plain(0.5), frames=15, warning="short"),
    _case("src_2_5s.mp4", "ok", plain(2.5), seconds=1, frames=30),
    _case("long_gop_open.mp4", "ok", lambda s, p: shutil.copy(s.long(), p) and None),
    _case(
        "negative_dts.mp4",
        "ok",
        lambda s, p: s.run(
            "-i", s.long(), "-t", "2", *X264, "-bf", "3", "-b_strategy", "0", *AAC, *NO_EDIT_LIST, out(p)
        ),
    ),
    # picture
    _case("rotate_90.mp4", "normalise", turned(90), width=120, height=160),
    _case("rotate_180.mp4", "normalise", turned(180)),
    _case("anamorphic_180x120.mp4", "ok", anamorphic, width=180),
    _case("odd_161x121.webm", "normalise", odd_size),
    _case("yuv444.mp4", "normalise", encoded("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv444p", *AAC)),
    _case(
        "full_range.mp4", "normalise", encoded("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuvj420p", *AAC)
    ),
    _case(
        "h264_10bit.mp4",
        "normalise",
        encoded("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", *AAC),
    ),
    _case("av1_opus.mp4", "normalise", encoded("-c:v", "libsvtav1", "-preset", "12", "-crf", "45", "-c:a", "libopus")),
    _case("vp9_opus.webm", "normalise", encoded(*VP9, "-c:a", "libopus")),
    _case("tiny_16x16.mp4", "warn", plain(size="16x16"), width=16, height=16, warning="tiny"),
    _case("uhd_3840x2160.mp4", "ok", plain(0.1, "3840x2160"), frames=3, width=3840, height=2160),
    _case(
        "all_black.mp4",
        "ok",
        lambda s, p: s.run("-f", "lavfi", "-i", "color=black:s=160x120:r=30:d=2", *sound(), *X264, *AAC, out(p)),
    ),
    _case("mpeg4_packed.avi", "normalise", encoded("-c:v", "mpeg4", "-vtag", "XVID", "-bf", "2", "-c:a", "libmp3lame")),
    _case(
        "animation.gif",
        "normalise",
        lambda s, p: s.run(*picture(rate="10"), out(p)),
        frames=20,
        has_audio=False,
        warning="no_audio",
    ),
    _case(
        "pcm_prores.mov",
        "normalise",
        encoded("-c:v", "prores_ks", "-profile:v", "0", "-pix_fmt", "yuv422p10le", "-c:a", "pcm_s16le"),
    ),
    _case(
        "raw_stream.h264", "warn", copied("-map", "0:v", "-f", "h264"), frames=50, has_audio=False, warning="no_times"
    ),
    _case("picture.png", "reject", still_picture),
    _case("picture_named.mp4", "reject", still_jpeg),
    _case("song_with_cover.mp4", "reject", cover_art),
    _case(
        "meta_inject.mp4",
        "ok",
        copied("-metadata", 'title=제목 "x",\n<script>alert(1)</script>', "-metadata", "comment=}{"),
    ),
)

NAMES = (
    "공백 있는 뉴스 9시.mp4",
    'it\'s "quoted".mp4',
    "-leading-dash.mp4",
    "semi;colon & $HOME `x`.mp4",
    "emoji_😀.mp4",
    "a:b.mp4",
    "100%d_%03d.mp4",
    "line\nbreak.mp4",
    "UPPER.MP4",
    "no_extension",
    b"not_utf8_\xff\xfe.mp4",
)
