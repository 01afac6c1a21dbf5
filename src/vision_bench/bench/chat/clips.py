"""What accompanies a prompt: media files as content parts, in two steps, choosing and encoding."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from vision_bench.bench.chat.forms import Form
from vision_bench.errors import InvalidRequest
from vision_bench.wire import chat

# The codec library is imported where it is needed: it takes 60 MB, which a text workload does without.

Json = dict[str, Any]
Media = Literal["none", "video", "frames", "image", "live"]
PLAIN = Form()

AUDIO_RATE = 16_000  # samples a second: what speech encoders resample to anyway
_ENDINGS = {"video": (".mp4",), "frames": (".mp4",), "image": (".jpg", ".jpeg", ".png")}


@dataclass(frozen=True, slots=True)
class Clip:
    """One media file, or none for a text.

    Attributes:
        data: what is sent of the file, in its form; for ``frames`` the file's bytes: each frame is formed by itself.
        indices: of the frames that are sent, for ``frames``.
        sends_audio: its sound is asked for, and there is some.
    """

    name: str
    media: Media = "none"
    path: Path | None = None
    data: bytes = b""
    media_type: str = ""
    indices: tuple[int, ...] = ()
    sends_audio: bool = False
    form: Form = PLAIN

    def select(self) -> Any:
        """What is to be encoded, read from the file anew: its bytes, or frames and sound."""
        data = b"" if self.path is None else self.path.read_bytes()
        return self._frames(data) if self.media == "frames" else self.formed(data)

    def formed(self, data: bytes) -> bytes:
        """A film's or picture's bytes as they are sent."""
        if self.media == "video":
            return self.form.film(data, self.name)
        return self.form.picture(data, self.media_type) if self.media == "image" else data

    def parts(self, selected: Any = None, *, uri: str | None = None) -> list[Json]:
        """Content parts of what ``select`` gave, by default of the bytes that are here already.

        Args:
            uri: what to write in the place of a video's bytes.
        """
        if self.media == "none":
            return []
        if self.media == "frames":
            return self._frame_parts(self._frames(self.data) if selected is None else selected)
        data = self.data if selected is None else selected
        make = chat.video_part if self.media == "video" else chat.image_part
        return [make(uri or data_uri(data, self.media_type))]

    def _frames(self, data: bytes) -> Any:
        from vision_bench.media.audio import decode_audio  # noqa: PLC0415
        from vision_bench.media.frames import decode_frames  # noqa: PLC0415

        sound = decode_audio(data, rate=AUDIO_RATE) if self.sends_audio else None
        return self.form.frames(decode_frames(data, indices=self.indices).frames), self.form.sound(sound, AUDIO_RATE)

    def _frame_parts(self, selected: Any) -> list[Json]:
        from vision_bench.media.encode import jpeg, wav  # noqa: PLC0415

        frames, sound = selected
        parts = [chat.image_part(data_uri(jpeg(frame), "image/jpeg")) for frame in frames]
        if sound is not None:
            parts.append(chat.audio_part(base64.b64encode(wav(sound, AUDIO_RATE)).decode("ascii")))
        return parts


@dataclass(frozen=True, slots=True)
class ClipFiles:
    """Clips in the order in which they are sent, and the hash of each file."""

    clips: list[Clip]
    sha256: dict[str, str] = field(default_factory=dict)


def media_files(folder: Path, media: Media) -> list[Path]:
    """Every clip or picture under ``folder`` (or the one file that it is), by name.

    Raises:
        InvalidRequest: there is none.
    """
    endings = _ENDINGS[media]
    if folder.is_dir():
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in endings)
    else:
        found = [folder]
    kept = [path for path in found if path.is_file() and not path.name.startswith(".")]
    if not kept:
        raise InvalidRequest(f"no {' or '.join(endings)} file under {folder}; set clips")
    return kept


def find_clips(
    folder: Path,
    media: Media,
    *,
    fps: float | None,
    num_frames: int | None,
    use_audio: bool,
    form: Form = PLAIN,
    made_dir: Path | None = None,
) -> ClipFiles:
    """Every clip or picture under ``folder`` (or the one file that it is), by name.

    Args:
        fps, num_frames: which frames are sent, for ``frames``; one of them is given.
        form: what is done to each before it is sent.
        made_dir: where films in this form are kept for the next time; they are made anew when None.

    Raises:
        InvalidRequest: there is none, or a picture of another format.
        InvalidMedia: a clip that is no usable video.
    """
    made = ClipFiles([])
    for path in media_files(folder, media):
        data = path.read_bytes()
        made.sha256[path.name] = hashlib.sha256(data).hexdigest()
        clip = (
            _picture(path, data)
            if media == "image"
            else _film(path, data, media, fps=fps, num_frames=num_frames, use_audio=use_audio, seconds=form.seconds)
        )
        clip = replace(clip, form=form)
        is_video = clip.media == "video"
        made.clips.append(
            replace(clip, data=form.kept_film(data, path.name, made_dir) if is_video else clip.formed(data))
        )
    return made


def _film(
    path: Path,
    data: bytes,
    media: Media,
    *,
    fps: float | None,
    num_frames: int | None,
    use_audio: bool,
    seconds: float | None,
) -> Clip:
    from vision_bench.media.probe import probe  # noqa: PLC0415
    from vision_bench.media.sampling import indices_at_fps, indices_of_count  # noqa: PLC0415
    from vision_bench.media.tracks import require_picture  # noqa: PLC0415

    info = probe(data, name=path.name)
    picture = require_picture(info)
    rate = picture.frames / picture.duration_seconds
    frames = picture.frames if seconds is None else max(1, min(picture.frames, round(seconds * rate)))
    indices: list[int] = []
    if media == "frames" and num_frames is not None:
        indices = indices_of_count(frames, num_frames)
    elif media == "frames" and fps is not None:
        indices = indices_at_fps(frames, rate, fps)
    return Clip(path.name, media, path, data, "video/mp4", tuple(indices), use_audio and info.has_audio)


def _picture(path: Path, data: bytes) -> Clip:
    is_png = data.startswith(b"\x89PNG")
    if not is_png and not data.startswith(b"\xff\xd8"):
        raise InvalidRequest(f"{path.name} is neither PNG nor JPEG; convert it")
    return Clip(path.name, "image", path, data, "image/png" if is_png else "image/jpeg")


def vary(clip: bytes, number: int) -> bytes:
    """A variant of a clip whose picture and sound both hash differently."""
    from vision_bench.media.variants import unique  # noqa: PLC0415

    return unique(clip, number)


def data_uri(data: bytes, media_type: str) -> str:
    """``data:video/mp4;base64,...``; without the imaging library that ``media.encode`` brings along."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
