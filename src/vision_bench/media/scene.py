"""One scene: the folder of a source's clips, brought to what a plan asks for, with a manifest that grows with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vision_bench.drafts import DRAFTS
from vision_bench.errors import InvalidMedia
from vision_bench.media.blackout import BLACKOUT_BITRATE, make_blackout
from vision_bench.media.container import display_name
from vision_bench.media.cutting import Job, cut_windows
from vision_bench.media.manifest import FORMAT, finished, skipped_entry, source_entry, write_manifest
from vision_bench.media.plan import Plan, Window

Progress = Callable[[int, int], None]
"""(clips ready, clips wanted), called as each is done."""


@dataclass(frozen=True, slots=True)
class CutSettings:
    """How to cut. The defaults are those of the original experiment.

    Attributes:
        start: seconds from the source's first frame.
        end: seconds; None is the end of the source.
        length: seconds a clip.
        bitrate: bits per second of the picture.
        encoder: ``auto``, ``libopenh264`` or ``libx264``.
        jobs: clips cut at once; None is one a processor.
        audio_index: which sound track, counted from 0; None is the default one.
        min_remainder: seconds; a last piece under it is listed in the manifest and not cut.
        with_blackout: also make the black copy of the first clip.
    """

    start: Fraction = Fraction(600)
    end: Fraction | None = Fraction(1200)
    length: Fraction = Fraction(6)
    bitrate: int = 1_500_000
    encoder: str = "auto"
    jobs: int | None = None
    audio_index: int | None = None
    min_remainder: Fraction = Fraction(1, 2)
    with_blackout: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """What became of one source.

    Attributes:
        scene: ``category/base``.
        folder: where the clips are.
        manifest: as written beside them.
        asked: clips that the range holds.
        made: clips that are there now, ``reused`` of them from an earlier run.
        failed: why each clip that the source covers could not be cut.
        is_short: the source ended before the range did.
    """

    scene: str
    folder: Path
    manifest: dict[str, Any]
    asked: int
    made: int
    reused: int
    failed: tuple[str, ...]
    is_short: bool

    @property
    def is_complete(self) -> bool:
        return not self.failed and not self.is_short

    @property
    def paths(self) -> list[Path]:
        """The clips, in order."""
        return [self.folder / entry["file"] for entry in self.manifest["clips"]]


@dataclass(slots=True)
class Scene:
    """One run over one source. ``known`` is the manifest of an earlier run, or None."""

    job: Job
    settings: CutSettings
    plan: Plan
    name: str
    source_hash: str
    blackout_folder: Path
    known: dict[str, Any] | None
    _entries: dict[int, dict[str, Any]] = field(default_factory=dict)
    _problems: dict[int, str] = field(default_factory=dict)

    def bring_up_to_date(self, progress: Progress) -> Prepared:
        """Cut what is missing, remove what no longer belongs, make the black copy, write the manifest."""
        folder = self.job.folder
        self._refuse_another_source()
        self._entries = self._still_good()
        reused, wanted = len(self._entries), len(self.plan.cut)
        self._remove_stale()
        progress(reused, wanted)

        def done(window: Window, entry: dict[str, Any] | None, reason: str | None) -> None:
            if entry is not None:
                self._entries[window.seq] = entry
                write_manifest(folder, self._manifest(self._known_blackout()))
            else:
                self._problems[window.seq] = reason or "unknown"
            progress(len(self._entries) + len(self._problems), wanted)

        cut_windows(self.job, tuple(window for window in self.plan.cut if window.seq not in self._entries), done)
        manifest = self._manifest(self._blackout())
        write_manifest(folder, manifest)
        windows = (*self.plan.cut, *(window for window, _ in self.plan.skipped))
        return Prepared(
            scene=self.name,
            folder=folder,
            manifest=manifest,
            asked=self.plan.asked,
            made=len(self._entries),
            reused=reused,
            failed=tuple(self._problems[seq] for seq in sorted(self._problems)),
            is_short=self.settings.end is not None and any(window.is_short for window in windows),
        )

    def _refuse_another_source(self) -> None:
        """``A.MP4`` and ``A.mp4`` share a folder name: the second is not cut over the first."""
        if self.known is not None and self.known["source"]["name"] != self.job.source.path.name:
            theirs = display_name(self.known["source"]["name"])
            raise InvalidMedia(
                f"{self.job.source.name}: {display_name(str(self.job.folder))} already holds the clips of {theirs}; "
                "rename the source or remove that folder"
            )

    def _settings_entry(self) -> dict[str, Any]:
        """What decides a clip's bytes. How many are cut at once does not."""
        settings, encoder, audio = self.settings, self.job.encoder, self.job.source.audio
        return {
            "start_seconds": float(settings.start),
            "end_seconds": None if settings.end is None else float(settings.end),
            "length_seconds": float(settings.length),
            "min_remainder_seconds": float(settings.min_remainder),
            "bitrate": settings.bitrate,
            "encoder": encoder.name,
            "encoder_version": encoder.version,
            "encoder_options": dict(encoder.options),
            "audio_stream": None if audio is None else audio.index,
        }

    def _still_good(self) -> dict[int, dict[str, Any]]:
        """Entries of an earlier run of the same source and settings whose files are there, byte for byte.

        The end of the range may differ: a longer one keeps the clips that it shares with a shorter.
        """
        if self.known is None or self.known["source"]["sha256"] != self.source_hash:
            return {}
        if self.known["settings"] | {"end_seconds": None} != self._settings_entry() | {"end_seconds": None}:
            return {}
        names = {window.seq: window.name for window in self.plan.cut}
        return {
            entry["seq"]: entry
            for entry in self.known["clips"]
            if names.get(entry["seq"]) == entry["file"] and finished(self.job.folder, entry)
        }

    def _remove_stale(self) -> None:
        """Clips that an earlier run made and this one will not: a folder holds one set. Other files stay."""
        names = {entry["file"] for entry in self._entries.values()}
        for entry in self.known["clips"] if self.known is not None else ():
            if entry["file"] not in names:
                (self.job.folder / entry["file"]).unlink(missing_ok=True)
        for path in self.job.folder.glob(DRAFTS):
            path.unlink(missing_ok=True)

    def _known_blackout(self) -> dict[str, Any] | None:
        return self.known["blackout"] if self.known is not None else None

    def _blackout(self) -> dict[str, Any] | None:
        """The black copy of the first clip, made anew unless the one there belongs to it."""
        known = self._known_blackout()
        if not self.settings.with_blackout or not self._entries:
            return None
        first = self._entries[min(self._entries)]
        if known is not None:
            if known["of_sha256"] == first["sha256"] and finished(self.blackout_folder, known):
                return known
            (self.blackout_folder / known["file"]).unlink(missing_ok=True)
        made = make_blackout(self.job.folder / first["file"], self.blackout_folder, self.job.encoder)
        return {**made, "of_sha256": first["sha256"], "bitrate": BLACKOUT_BITRATE}

    def _manifest(self, blackout: dict[str, Any] | None) -> dict[str, Any]:
        problems = {seq: f"failed: {reason}" for seq, reason in self._problems.items()}
        failed = [(window, problems[window.seq]) for window in self.plan.cut if window.seq in problems]
        not_made = sorted([*self.plan.skipped, *failed], key=lambda pair: pair[0].seq)
        return {
            "format": FORMAT,
            "made_by": f"vision-bench {version('vision-bench')}",
            "scene": self.name,
            "source": source_entry(self.job.source.path, self.source_hash, self.job.info),
            "settings": self._settings_entry(),
            "asked": self.plan.asked,
            "made": len(self._entries),
            "clips": [self._entries[seq] for seq in sorted(self._entries)],
            "not_made": [skipped_entry(window, reason) for window, reason in not_made],
            "blackout": blackout,
        }
