"""One source into named clips, a black copy of the first, and ``clips.json`` that says what was done.

A second run makes only what is missing, damaged, or was made with other settings; what is there is proved by its hash.
"""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from vision_bench.errors import InvalidMedia, InvalidRequest, InvalidSettings
from vision_bench.media.container import display_name, unreadable
from vision_bench.media.cutting import Job
from vision_bench.media.encoders import Encoder, choose_encoder, usable_cpus
from vision_bench.media.exact import Source
from vision_bench.media.layout import ADHOC, adhoc_name, base_name, blackout_folder, check_category, clips_folder
from vision_bench.media.lock import only_run_in
from vision_bench.media.manifest import file_hash, read_manifest
from vision_bench.media.plan import plan_windows
from vision_bench.media.probe import Inspection, inspect_media
from vision_bench.media.scene import CutSettings, Prepared, Progress, Scene
from vision_bench.media.tracks import AudioTrack, MediaInfo, require_picture


def prepare_source(
    source: Path,
    *,
    category: str,
    data_dir: Path,
    settings: CutSettings | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """Cut ``source`` into ``data_dir/clips/{category}/{base}`` and black out the first clip. The source is not touched.

    Raises:
        UnknownName: no such category.
        InvalidMedia: not a film with a picture; the message names file, stream and remedy.
        InvalidRequest: a range that holds nothing, or no such sound track.
        InvalidSettings: the folder cannot be written, or another run is cutting into it.
    """
    check_category(category)
    scene = (category, base_name(source))
    return _prepare(source, scene, data_dir=data_dir, settings=settings or CutSettings(), progress=progress)


def cut_whole(
    source: Path,
    *,
    data_dir: Path,
    length: Fraction = Fraction(6),
    settings: CutSettings | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """Cut a file that was never prepared, from its start to its end, into ``data_dir/clips/adhoc/{stem}-{hash}``.

    The hash in the folder's name keeps two files of one name apart, and lets a second call find the first one's clips.
    Raises as `prepare_source` does.
    """
    chosen = replace(settings or CutSettings(with_blackout=False), start=Fraction(0), end=None, length=length)
    if not os.path.isfile(source):  # noqa: PTH113  Path raises for a name too long for any file
        raise InvalidMedia(f"{display_name(source)}: no such file; looked at {display_name(str(source))}")
    try:
        sha256 = file_hash(source)
    except OSError as problem:
        raise InvalidMedia(unreadable(display_name(source), problem)) from problem
    scene = (ADHOC, adhoc_name(source, sha256))
    return _prepare(source, scene, data_dir=data_dir, settings=chosen, progress=progress)


def _prepare(
    source: Path, scene: tuple[str, str], *, data_dir: Path, settings: CutSettings, progress: Progress | None
) -> Prepared:
    try:
        return _cut_scene(source, scene, data_dir, settings, progress or (lambda ready, wanted: None))
    except OSError as problem:
        place = display_name(os.fsdecode(problem.filename or data_dir))
        raise InvalidSettings(
            f"{place}: {problem.strerror or problem}; free it, or give another --data-dir"
        ) from problem


def _cut_scene(
    source: Path, scene: tuple[str, str], data_dir: Path, settings: CutSettings, progress: Progress
) -> Prepared:
    folder = clips_folder(data_dir, *scene)
    encoder = choose_encoder(settings.encoder)
    job = _job(source, inspect_media(source), encoder, settings, folder)
    plan = plan_windows(
        job.source.times,
        start=settings.start,
        end=settings.end,
        length=settings.length,
        min_remainder=settings.min_remainder,
    )
    with only_run_in(folder):
        made = Scene(
            job=job,
            settings=settings,
            plan=plan,
            name="/".join(scene),
            source_hash=file_hash(source),
            blackout_folder=blackout_folder(data_dir, *scene),
            known=read_manifest(folder),
        )
        return made.bring_up_to_date(progress)


def _job(source: Path, inspection: Inspection, encoder: Encoder, settings: CutSettings, folder: Path) -> Job:
    info, times, sound_seconds = inspection
    video = require_picture(info)
    assert times is not None  # noqa: S101  a picture track always comes with its times
    audio, warning = _choose_sound(info, settings.audio_index)
    if warning:
        info = replace(info, warnings=(*info.warnings, warning))
    jobs = settings.jobs or usable_cpus()
    return Job(
        source=Source(source, info.name, video, audio, times),
        info=info,
        sound_seconds=sound_seconds[audio.index] if audio is not None else [],
        encoder=encoder,
        bitrate=settings.bitrate,
        folder=folder,
        jobs=jobs,
        threads=max(1, usable_cpus() // jobs),
    )


def _choose_sound(info: MediaInfo, wanted: int | None) -> tuple[AudioTrack | None, str | None]:
    """The sound track to use (None when there is none with packets) and what to say about the choice."""
    filled = [track for track in info.audio if track.packets]
    if wanted is not None:
        if not 0 <= wanted < len(info.audio):
            raise InvalidRequest(
                f"{info.name} has {len(info.audio)} sound tracks, none with index {wanted}; tracks: {_listed(info)}"
            )
        return (info.audio[wanted] if info.audio[wanted].packets else None), None
    if not filled:
        return None, "no_audio: no sound track with packets; leave use_audio_in_video off for its clips"
    chosen = next((track for track in filled if track.is_default), filled[0])
    if len(filled) == 1:
        return chosen, None
    number = info.audio.index(chosen)
    return chosen, f"several_sounds: {_listed(info)}; {number} is used, choose another with --audio-index"


def _listed(info: MediaInfo) -> str:
    return ", ".join(
        f"{number} ({display_name(track.language or 'no language')}, {track.codec})"
        for number, track in enumerate(info.audio)
    )
