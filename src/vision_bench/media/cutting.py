"""Make clip files from windows: pick the way that fits source and encoder, check each file, then give it its name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av

from vision_bench.drafts import draft_of
from vision_bench.errors import InvalidMedia
from vision_bench.media.container import reason_of, writable
from vision_bench.media.encoders import Encoder
from vision_bench.media.exact import Codecs, Source, write_window
from vision_bench.media.manifest import clip_entry
from vision_bench.media.plan import Window, chunks, has_sound_in
from vision_bench.media.probe import probe
from vision_bench.media.program import Cancelled, can_cut_in_one_go, cut_exactly, cut_run
from vision_bench.media.times import MAX_START_GAP_SECONDS
from vision_bench.media.tracks import MediaInfo

RUN_LENGTH = 4
"""Windows that one process cuts at most: more would save little and keep more encoders in memory."""
_END_SLACK_SECONDS = 0.1
MODEL_PATCH_PIXELS = 28
"""The smallest picture that the vision models here take whole."""


@dataclass(frozen=True, slots=True)
class Job:
    """All that is the same for every window of one source."""

    source: Source
    info: MediaInfo
    sound_seconds: list[float]
    encoder: Encoder
    bitrate: int
    folder: Path
    jobs: int
    threads: int


Done = Callable[[Window, dict[str, Any] | None, str | None], None]
"""Called as each window ends: its manifest entry, or None and the reason."""


def cut_windows(job: Job, windows: tuple[Window, ...], done: Done) -> None:
    """Cut ``windows`` with up to ``job.jobs`` at once. A window that fails does not stop the others.

    Interrupting it ends the processes it started and leaves finished clips and nothing else.
    """
    runs = chunks(windows, jobs=job.jobs, largest=RUN_LENGTH if job.encoder.program is not None else 1)
    cancelled = threading.Event()
    lock = threading.Lock()

    def report(window: Window, entry: dict[str, Any] | None, reason: str | None) -> None:
        with lock:
            done(window, entry, reason)

    with ThreadPoolExecutor(max(1, job.jobs), thread_name_prefix="cut") as pool:
        futures: list[Future[None]] = [pool.submit(_cut_run, job, run, cancelled, report) for run in runs]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
        except BaseException:
            cancelled.set()
            pool.shutdown(cancel_futures=True)
            raise


def _cut_run(job: Job, run: tuple[Window, ...], cancelled: threading.Event, report: Done) -> None:
    """One run of neighbours: all in one go where possible; what that did not get right is cut on its own."""
    left = list(run)
    if job.encoder.program is not None and can_cut_in_one_go(job.source, job.info.container):
        left = _cut_together(job, left, cancelled, report)
    for window in left:
        if cancelled.is_set():
            raise Cancelled("stopped between clips")
        try:
            report(window, _cut_alone(job, window, cancelled), None)
        except InvalidMedia as problem:
            report(window, None, str(problem))
        except av.error.FFmpegError as problem:
            report(window, None, f"{job.source.name}: {window.name} cannot be made ({reason_of(problem)})")


def _cut_together(job: Job, run: list[Window], cancelled: threading.Event, report: Done) -> list[Window]:
    """Cut ``run`` with one process; returns the windows whose file is not what was planned."""
    left: list[Window] = []
    with _temporaries(job, run) as temporary:
        parts = [(window, temporary[window.seq], _hears(job, window)) for window in run]
        with suppress(InvalidMedia):  # a damaged source; the exact way says where, or copes
            cut_run(
                job.source, job.info.container, parts, encoder=job.encoder, bitrate=job.bitrate, cancelled=cancelled
            )
        for window, path, with_sound in parts:
            try:
                info = _check(path, window.frames, with_sound=with_sound)
            except InvalidMedia:
                left.append(window)
                continue
            report(window, _keep(job, window, path, info), None)
    return left


def _cut_alone(job: Job, window: Window, cancelled: threading.Event) -> dict[str, Any]:
    """Cut one window in the exact way. A source with holes may give fewer frames than its packets promised."""
    with _temporaries(job, [window]) as temporary:
        path = temporary[window.seq]
        with_sound = _hears(job, window)
        if job.encoder.program is not None:
            cut_exactly(
                job.source,
                window,
                path,
                encoder=job.encoder,
                bitrate=job.bitrate,
                cancelled=cancelled,
                with_sound=with_sound,
            )
        else:
            options = tuple(job.encoder.options.items())
            codecs = Codecs(job.encoder.name, "aac", job.bitrate, options, job.threads)
            with writable(path) as target, av.open(target, "w", format="mp4", options={"movflags": "+faststart"}) as to:
                write_window(job.source, window, to, codecs, with_sound=with_sound)
        return _keep(job, window, path, _check(path, None, with_sound=None))


def _keep(job: Job, window: Window, temporary: Path, info: MediaInfo) -> dict[str, Any]:
    """Give a checked file its name."""
    final = job.folder / window.name
    temporary.replace(final)
    return clip_entry(final, window, info, _warnings(job, window, info))


def _hears(job: Job, window: Window) -> bool:
    zero = job.source.zero_seconds
    return job.source.audio is not None and has_sound_in(
        job.sound_seconds, float(zero + window.origin), float(zero + window.sound_end)
    )


def _check(path: Path, frames: int | None, *, with_sound: bool | None) -> MediaInfo:
    """The probe of a finished file, or InvalidMedia when it is not what every clip must be."""
    info = probe(path)
    video = info.video
    if video is None or (video.codec, video.pix_fmt) != ("h264", "yuv420p") or video.width % 2 or video.height % 2:
        raise InvalidMedia(f"{path.name}: not an even-sized yuv420p H.264 picture")
    if frames is not None and video.frames != frames:
        raise InvalidMedia(f"{path.name}: {video.frames} frames where {frames} were planned")
    if with_sound is not None and info.has_audio != with_sound:
        raise InvalidMedia(f"{path.name}: sound is {'missing' if with_sound else 'declared but empty'}")
    return info


def _warnings(job: Job, window: Window, info: MediaInfo) -> list[str]:
    """What a reader of the results should know of this clip."""
    source, video = job.source.video, info.video
    assert video is not None  # noqa: S101  checked before
    found: list[str] = []
    wanted = float(min(window.held, window.end - window.start))
    if not info.has_audio:
        found.append("no_audio: the source has no sound here; leave use_audio_in_video off")
    elif info.audio[0].duration_seconds < wanted - _END_SLACK_SECONDS:
        found.append(f"short_sound: {info.audio[0].duration_seconds:.3f} s of sound")
    if window.is_short:
        found.append(f"short: {float(window.held):.3f} s of {float(window.end - window.start):g} s")
    if video.frames != window.frames:
        found.append(f"damaged: {video.frames} of {window.frames} frames could be decoded")
    late = window.origin - window.start
    if late > MAX_START_GAP_SECONDS:
        found.append(f"late_picture: no frame in the first {float(late):.3f} s; picture and sound start after them")
    if min(video.width, video.height) < MODEL_PATCH_PIXELS:
        found.append(f"tiny: {video.width}x{video.height} is smaller than one model patch ({MODEL_PATCH_PIXELS})")
    if source.is_interlaced:
        found.append("deinterlaced: the source is interlaced")
    return found


@contextmanager
def _temporaries(job: Job, run: list[Window]) -> Iterator[dict[int, Path]]:
    """Hidden names in the clips' own folder, by window number; whatever still lies there is removed."""
    names = {window.seq: draft_of(job.folder / window.name) for window in run}
    try:
        yield names
    finally:
        for path in names.values():
            path.unlink(missing_ok=True)
