"""Cut with an ffmpeg program: several neighbouring windows in one go, or one window fed frame by frame.

One process a run of windows saves what a process a clip spends again each time: the start, the seek, and the decoding
from the key frame up to the window. With one decoder and one encoder thread each, as many processes as there are
processors keep all of them busy.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import IO

import av

from vision_bench.errors import InvalidMedia
from vision_bench.media.chains import as_text, form_steps, sound_steps
from vision_bench.media.container import display_name
from vision_bench.media.encoders import Encoder
from vision_bench.media.exact import Codecs, Source, write_window
from vision_bench.media.plan import Window

_POLL_SECONDS = 0.2
_KEPT_STDERR_BYTES = 2_000
# Other containers seek by guessing a place, so decoding starts this much before the wanted frame.
_SEEK_LEAD_SECONDS = 2
_INDEXED_FORMATS = frozenset({"mov", "mp4", "matroska", "webm"})
_PLAIN_FORMATS = _INDEXED_FORMATS | {"mpegts", "avi", "flv"}


class Cancelled(Exception):
    """The run was told to stop; what was half made is gone."""


def can_cut_in_one_go(source: Source, container: str) -> bool:
    """The program alone finds the same frames as we do: known containers with times, standing upright."""
    track = source.video
    return (
        bool(_PLAIN_FORMATS & set(container.split(",")))
        and not source.times.is_decoded
        and not track.rotation
        and not track.is_mirrored
    )


def cut_run(
    source: Source,
    container: str,
    parts: Iterable[tuple[Window, Path, bool]],
    *,
    encoder: Encoder,
    bitrate: int,
    cancelled: threading.Event,
) -> None:
    """Cut neighbouring windows with one process.

    Args:
        parts: (window, file to write, with sound) in order.

    Raises:
        InvalidMedia: the program ended with an error; its last words are in the message.
        Cancelled: ``cancelled`` was set.
    """
    parts = list(parts)
    program = str(encoder.program)
    lead = 0 if _INDEXED_FORMATS & set(container.split(",")) else _SEEK_LEAD_SECONDS
    seek = _edge(source, parts[0][0].first) - lead
    command: list[str | bytes] = [
        program,
        "-nostdin",
        "-v",
        "error",
        "-y",
        "-protocol_whitelist",
        "file",
        "-threads",
        "1",
    ]
    # Times stay those of the container, so that the windows' borders mean the same to both libraries.
    command += ["-copyts", "-noaccurate_seek"]
    if seek > source.zero_seconds:
        command += ["-ss", f"{float(seek):.6f}", "-seek_timestamp", "1"]
    command += ["-i", file_argument(source.path)]
    command += ["-filter_complex_threads", "1", "-filter_complex", _graph(source, parts)]
    for number, (_, path, with_sound) in enumerate(parts):
        command += ["-map", f"[v{number}]", *_picture_options(encoder, bitrate)]
        if with_sound:
            command += ["-map", f"[a{number}]", "-c:a", "aac"]
        command += ["-map_metadata", "-1", "-movflags", "+faststart", "-f", "mp4", file_argument(path)]
    _run(command, source.name, cancelled)


def cut_exactly(
    source: Source,
    window: Window,
    path: Path,
    *,
    encoder: Encoder,
    bitrate: int,
    cancelled: threading.Event,
    with_sound: bool,
) -> None:
    """Cut one window: this process decodes and forms it, the program encodes what comes through a pipe."""
    command: list[str | bytes] = [str(encoder.program), "-nostdin", "-v", "error", "-y", "-f", "nut", "-i", "pipe:0"]
    command += ["-map", "0:v", "-map", "0:a?", *_picture_options(encoder, bitrate), "-c:a", "aac"]
    command += ["-map_metadata", "-1", "-movflags", "+faststart", "-f", "mp4", file_argument(path)]

    def feed(pipe: IO[bytes]) -> None:
        # The name is experimental to this library only because the format may still gain features.
        with av.open(pipe, "w", format="nut", options={"strict": "experimental"}) as sink:
            write_window(source, window, sink, Codecs("rawvideo", "pcm_s16le"), with_sound=with_sound)

    _run(command, source.name, cancelled, feed)


def black_out(clip: Path, path: Path, encoder: Encoder, bitrate: int, name: str) -> None:
    """The same clip with every pixel black; its sound packets are copied."""
    command: list[str | bytes] = [str(encoder.program), "-nostdin", "-v", "error", "-y", "-copyts"]
    command += ["-i", file_argument(clip), "-map", "0:v:0", "-map", "0:a?"]
    command += ["-vf", "drawbox=0:0:iw:ih:color=black:t=fill", *_picture_options(encoder, bitrate), "-c:a", "copy"]
    command += ["-map_metadata", "-1", "-movflags", "+faststart", "-f", "mp4", file_argument(path)]
    _run(command, name, threading.Event())


def file_argument(path: Path) -> bytes:
    """A path that cannot be read as an option, a protocol or a pattern, whatever bytes it holds."""
    return b"file:" + os.fsencode(path.absolute())


def _edge(source: Source, index: int) -> Fraction:
    """A time on the container's clock halfway between frame ``index`` and the one before it.

    Halfway, because the filter rounds to a microsecond and a border on a frame could fall on either side of it.
    """
    times = source.times
    if index == 0:
        return source.zero_seconds - Fraction(1, 1000)
    if index == len(times.pts):
        return source.zero_seconds + times.start_of(index - 1) + Fraction(1, 1000)
    return source.zero_seconds + (times.start_of(index - 1) + times.start_of(index)) / 2


def _graph(source: Source, parts: list[tuple[Window, Path, bool]]) -> str:
    """Split the picture and the sound once for every window, and trim each copy to its own."""
    count = len(parts)
    heard = [number for number, (_, _, with_sound) in enumerate(parts) if with_sound]
    lines = [f"[0:{source.video.index}]split={count}" + "".join(f"[p{number}]" for number in range(count))]
    if heard and source.audio is not None:
        lines.append(f"[0:{source.audio.index}]asplit={len(heard)}" + "".join(f"[s{number}]" for number in heard))
    form = as_text(form_steps(source.video))
    for number, (window, _, with_sound) in enumerate(parts):
        start, end = _edge(source, window.first), _edge(source, window.stop)
        steps = [f"trim=start={float(start):.6f}:end={float(end):.6f}", form, *_retiming(source)]
        lines.append(f"[p{number}]" + ",".join(step for step in steps if step) + f"[v{number}]")
        if with_sound and source.audio is not None:
            origin, stop = (float(source.zero_seconds + at) for at in (window.origin, window.sound_end))
            lines.append(f"[s{number}]{as_text(sound_steps(source.audio, origin, stop))}[a{number}]")
    return ";".join(lines)


def _retiming(source: Source) -> list[str]:
    """A constant rate is counted out anew, so that it stays one; a changing rate keeps its own steps from 0."""
    times = source.times
    if times.rate is not None:
        return [f"settb={times.rate.denominator}/{times.rate.numerator}", "setpts=N"]
    return ["setpts=PTS-STARTPTS"]


def _picture_options(encoder: Encoder, bitrate: int) -> list[str]:
    # "filter": else the program would round the times of a changing rate to steps of its mean.
    timing = ["-fps_mode", "passthrough", "-enc_time_base", "filter"]
    return ["-c:v", encoder.name, "-b:v", str(bitrate), "-threads", "1", "-pix_fmt", "yuv420p", *timing]


def _run(
    command: list[str | bytes],
    name: str,
    cancelled: threading.Event,
    feed: Callable[[IO[bytes]], None] | None = None,
) -> None:
    """Run to the end; kill on cancel; InvalidMedia with the program's last words when it fails."""
    with tempfile.TemporaryFile() as words:
        stdin = subprocess.PIPE if feed is not None else subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=words)
        try:
            if feed is not None and process.stdin is not None:
                # A pipe that breaks means the program gave up; its own words say why.
                with suppress(BrokenPipeError), process.stdin:
                    feed(process.stdin)
            _wait(process, cancelled)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            words.seek(0)
            said = words.read()[-_KEPT_STDERR_BYTES:].decode("utf-8", "replace").strip().splitlines()
            reason = display_name(" | ".join(said[-3:])) or "without a word"
            raise InvalidMedia(f"{name}: ffmpeg ended with status {process.returncode}: {reason}")


def _wait(process: subprocess.Popen[bytes], cancelled: threading.Event) -> None:
    while process.poll() is None:
        if cancelled.is_set():
            raise Cancelled("stopped while cutting")
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_POLL_SECONDS)
