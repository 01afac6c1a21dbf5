"""Which H.264 encoder cuts the clips: the one in PyAV, or the one in imageio-ffmpeg's program."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import av

from vision_bench.errors import InvalidRequest, MissingExtra, MissingTool, UnknownName

ENCODER_NAMES = ("auto", "libopenh264", "libx264")
# The default preset takes four times as long for a picture that no model tells apart at this bit rate.
_X264_OPTIONS = MappingProxyType({"preset": "veryfast"})
_PROGRAM_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder that was found on this machine.

    Attributes:
        name: as libav spells it.
        version: of the library or program that holds it.
        program: the ffmpeg that runs it; None when it lives in PyAV.
        options: handed to the encoder.
    """

    name: str
    version: str
    program: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def find_ffmpeg() -> Path | None:
    """The program that the extra ``ffmpeg`` brings (or that IMAGEIO_FFMPEG_EXE names), or None without the extra."""
    try:
        module = import_module("imageio_ffmpeg")
        return Path(module.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        return None


def choose_encoder(name: str = "auto") -> Encoder:
    """The encoder called ``name``; ``auto`` is libopenh264 where the extra ``ffmpeg`` is installed, else libx264.

    Raises:
        UnknownName: not one of `ENCODER_NAMES`.
        MissingExtra: libopenh264 without the extra.
        MissingTool: the program or library is there but lacks the encoder.
    """
    if name not in ENCODER_NAMES:
        raise UnknownName(f"no encoder {name!r}; choose one of: {', '.join(ENCODER_NAMES)}")
    if name != "libx264":
        program = find_ffmpeg()
        told = _ask(program) if program is not None else None
        if told is not None and told.has_openh264:
            return Encoder("libopenh264", told.version, program)
        if name == "libopenh264" and program is None:
            raise MissingExtra("ffmpeg", "the encoder libopenh264")
        if name == "libopenh264":
            raise MissingTool(f"{program} has no libopenh264; reinstall imageio-ffmpeg or use --encoder libx264")
    if "libx264" not in av.codecs_available:
        raise MissingTool("this PyAV was built without libx264; install PyAV from its wheel")
    codec = ".".join(str(part) for part in av.library_versions["libavcodec"])
    return Encoder("libx264", f"PyAV {av.__version__}, libavcodec {codec}", options=_X264_OPTIONS)


def parse_bitrate(text: str) -> int:
    """Bits per second from ``1500k``, ``1.5M`` or ``1500000``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", text.strip())
    value = float(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()] if found else 0
    if value < 1_000:
        raise InvalidRequest(f"bit rate {text!r} is not one; write 1500k, 1.5M or 1500000 (1k at least)")
    return round(value)


def usable_cpus() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class _Program:
    """What an ffmpeg says of itself."""

    version: str
    has_openh264: bool


def _ask(program: Path) -> _Program:
    """Run it once: the list of encoders comes on stdout, the version on stderr."""
    try:
        done = subprocess.run([program, "-encoders"], capture_output=True, timeout=_PROGRAM_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise MissingTool(f"{program} does not run ({problem}); reinstall imageio-ffmpeg") from problem
    version = re.search(rb"ffmpeg version (\S+)", done.stderr)
    return _Program(
        version=f"ffmpeg {version[1].decode('utf-8', 'replace')}" if version else "ffmpeg of unknown version",
        has_openh264=re.search(rb"^ V\S* libopenh264 ", done.stdout, re.MULTILINE) is not None,
    )
