"""What is asked: a chat workload file, checked, and what its bodies say."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from vision_bench.bench.chat import bodies
from vision_bench.bench.chat.clips import Clip, Media, data_uri, find_clips, vary
from vision_bench.bench.chat.forms import Control, Form
from vision_bench.bench.chat.live import Live
from vision_bench.bench.workload import Common, WorkloadFile, fingerprint, require
from vision_bench.errors import InvalidRequest
from vision_bench.wire import chat
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]

MAX_SCHEMA_BYTES = 1024 * 1024
MIN_LINES = 16

_SAMPLING = ("temperature", "top_p", "seed")
_BUDGET = ("max_tokens", "max_completion_tokens")
OWN_KEYS = frozenset(("model", "messages", "stream", "stream_options", "thread_id", *_BUDGET, *_SAMPLING))
"""Keys of a body that a workload says by itself: two values for one thing, and the report would name the other."""


class ChatWorkload(Common, frozen=True, kw_only=True):
    """A chat workload, as its file says it (docs/workloads.md).

    Attributes:
        media: what accompanies the prompt: clips whole, JPEG frames of clips (and their sound as WAV), or pictures;
            ``clips`` names the file or folder, relative to the workload file. Or frames of a stream that a gateway
            holds: ``live`` says of which film, and which.
        max_tokens, max_completion_tokens: the output budget, sent under the name that was chosen.
        stream: ask for events; without them there is no TTFT.
        per_chunk_usage: ask for token counts with every event, which gives per-token ITL where the server obeys.
        cache: ``repeat`` sends the same bodies round after round; with ``unique`` no cache of an earlier request can
            serve one beyond the system prompt: each text begins with a number of its own, each clip is a variant whose
            picture and sound both hash differently (vLLM answers 400 to a known sound with an unknown picture).
        encode: ``inside`` reads and encodes media after the request is due, in a thread; ``before`` long before.
        threads: this many stable ``thread_id`` values, used in turn; 0 sends none.
        state: whether caches are meant to be warm or cold; a cold run that meets cached tokens is not called stable.
        schema: a JSON schema file that answers are held to.
        height, seconds: media are sent with at most so many lines, and films only their beginning.
        control: the same media with black pictures, or with silence for sound.
        labels: a file of what is true of each clip; facts: which of its facts count, by name, ``*`` and ``!``.
        extra: further keys of the body, as they go on the wire.
    """

    model: str
    prompt: str
    media: Media
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    system: str | None = None
    clips: str | None = None
    live: Live | msgspec.UnsetType = msgspec.UNSET  # unset, not null: all other workloads keep their fingerprints
    fps: float | None = None
    num_frames: int | None = None
    max_pixels: int | None = None
    height: int | None = None
    seconds: float | None = None
    control: Control | None = None
    use_audio: bool = False
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stream: bool = True
    per_chunk_usage: bool = False
    cache: Literal["repeat", "unique"] = "repeat"
    encode: Literal["before", "inside"] = "before"
    threads: int = 0
    state: Literal["warm", "cold"] | None = None
    schema: str | None = None
    labels: str | None = None
    facts: list[str] | None = None
    extra: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        require(self.kind == "chat", f"kind is {self.kind!r}, not 'chat'")
        budgets = [value for value in (self.max_tokens, self.max_completion_tokens) if value is not None]
        require(len(budgets) == 1, "give one of max_tokens and max_completion_tokens: an open end cannot be compared")
        require(budgets[0] >= 1, f"the output budget is {budgets[0]}; give 1 token or more")
        require(bool(self.model.strip()), "model is empty")
        require(bool(self.prompt.strip()), "prompt is empty")
        has_no_clips = self.media in ("none", "live")
        require((self.clips is None) == has_no_clips, f"media is {self.media!r}: {_clips_hint(self.media)}")
        require(
            isinstance(self.live, Live) == (self.media == "live"), 'media = "live" and the table [live] go together'
        )
        require(self.fps is None or self.num_frames is None, "fps and num_frames exclude each other; give one")
        require(self.fps is None or self.fps > 0, "fps must be above 0")
        require(self.num_frames is None or self.num_frames >= 1, "num_frames must be 1 or more")
        require(self.max_pixels is None or self.max_pixels >= 1, "max_pixels must be 1 or more")
        require(self.height is None or self.height >= MIN_LINES, f"height must be {MIN_LINES} lines or more")
        require(self.seconds is None or self.seconds > 0, "seconds must be above 0")
        require(not has_no_clips or self.form.is_plain, "height, seconds and control belong to media")
        require(self.control != "muted" or self.use_audio, 'control = "muted" is of sound; set use_audio = true')
        require(self.facts is None or self.labels is not None, "facts are chosen out of labels; name the file")
        require(self.threads >= 0, "threads must be 0 or more")
        of_films = any((self.fps, self.num_frames, self.use_audio, self.seconds))
        is_film = self.media in ("video", "frames")
        require(is_film or not of_films, "fps, num_frames, seconds and use_audio belong to films")
        is_frames = self.media == "frames"
        require(not is_frames or bool(self.fps or self.num_frames), 'media = "frames": say fps or num_frames')
        is_unique = self.cache == "unique"
        require(
            not is_unique or self.media not in ("image", "live"),
            'cache = "unique" knows texts and video; pictures have no variants',
        )
        require(not is_unique or self.encode == "before", 'variants are made before the clock; encode = "before"')
        is_hot = self.temperature is None or 0.0 <= self.temperature < math.inf
        require(is_hot, f"temperature is {self.temperature}; give a number of 0 or more")
        require(self.top_p is None or 0.0 < self.top_p <= 1.0, f"top_p is {self.top_p}; give a share above 0, up to 1")
        for key in OWN_KEYS & self.extra.keys():
            require(
                False, f"extra says {key}, which would be sent in place of the workload's own; take it out of extra"
            )

    @property
    def form(self) -> Form:
        """What is done to media before they are sent."""
        return Form(self.height, self.seconds, self.control)

    @property
    def media_shape(self) -> str:
        """The media in a few words, for a reader of a percentile."""
        if isinstance(self.live, Live):
            return self.live.words
        words: list[str] = [self.media]
        if self.media in ("video", "frames"):
            frames = f"{self.num_frames} frames" if self.num_frames else "server's fps"
            words.append(f"{self.fps:g} fps" if self.fps else frames)
        words += [self.form.words()] if self.form.words() else []
        words += [f"{self.max_pixels} pixels at most"] if self.max_pixels else []
        return ", ".join([*words, *(["with sound"] if self.use_audio else [])])


def _clips_hint(media: str) -> str:
    return "leave clips out" if media in ("none", "live") else "clips must name a file or folder"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload ready to be sent.

    Attributes:
        fingerprint: of the workload and of every file that it names.
        files: name to SHA-256 of those.
        schema: what answers are held to, or None.
        body_sha256: of each body in turn, with its slots empty.
        items: the names of what is sent, in turn.
        labels: what the manifest keeps of the label file; None without one.
        film: what plays while the run asks about it; None of a workload that is not live.
    """

    workload: ChatWorkload
    bodies: bodies.Bodies
    fingerprint: str
    files: dict[str, str]
    schema: Json | None
    body_sha256: tuple[str, ...]
    items: tuple[str, ...]
    labels: Json | None
    film: Path | None = None


def prepare(
    file: WorkloadFile,
    *,
    can_stream: bool,
    salt: str,
    batch_size: int | None = None,
    made_dir: Path | None = None,
) -> Prepared:
    """Read and check a workload file and everything it names, and encode its bodies.

    Args:
        can_stream: the wire carries events; a batch does not.
        made_dir: see ``find_clips``.

    Raises:
        InvalidRequest: the file or something that it names is wrong.
        InvalidMedia: a clip that is no usable video.
    """
    workload = file.checked(ChatWorkload)
    files: dict[str, str] = {}
    schema = None if workload.schema is None else _read_schema(file.resolve(workload.schema), files)
    clips = [Clip("text")]
    if workload.clips is not None:
        found = find_clips(
            file.resolve(workload.clips),
            workload.media,
            fps=workload.fps,
            num_frames=workload.num_frames,
            use_audio=workload.use_audio,
            form=workload.form,
            made_dir=made_dir,
        )
        clips = found.clips
        files |= found.sha256
    film: Path | None = None
    if isinstance(workload.live, Live):
        film, clips = file.resolve(workload.live.film), [Clip(f"live {workload.live.look}")]
        files[film.name] = _sha256(film)
    items = tuple(clip.name for clip in clips)
    labels = None if workload.labels is None else _read_labels(file.resolve(workload.labels), workload, items, files)
    templates = [_template(workload, clip, schema, can_stream=can_stream) for clip in clips]
    varies = workload.cache == "unique" and workload.media == "video"
    made = bodies.Bodies(
        templates,
        threads=workload.threads,
        salt=salt,
        batch_size=batch_size,
        vary=vary if varies else None,
    )
    hashes = tuple(template.digest.hex()[:16] for template in templates)
    return Prepared(workload, made, fingerprint(workload, files), files, schema, hashes, items, labels, film)


def _template(workload: ChatWorkload, clip: Clip, schema: Json | None, *, can_stream: bool) -> bodies.Template:
    def body(parts: list[Json]) -> Json:
        return _body(workload, clip, parts, schema, can_stream=can_stream)

    def encode() -> bodies.FreshBody:
        selected = clip.select()
        sel_ns = time.monotonic_ns()
        parts = clip.parts(selected)
        enc_ns = time.monotonic_ns()
        return bodies.FreshBody(bodies.encode_json(body(parts)), sel_ns, enc_ns)

    if workload.cache == "unique" and workload.media == "video":
        parts = clip.parts(uri=data_uri(b"", clip.media_type) + bodies.MEDIA)
        return bodies.make_template(clip.name, body(parts), clip=clip.data)
    is_inside = workload.encode == "inside"
    return bodies.make_template(clip.name, body(clip.parts()), encode=encode if is_inside else None)


def _body(workload: ChatWorkload, clip: Clip, parts: list[Json], schema: Json | None, *, can_stream: bool) -> Json:
    parts = [workload.live.part()] if isinstance(workload.live, Live) else parts
    is_video = clip.media == "video"
    is_marked = workload.cache == "unique" and not parts
    text = f"[{bodies.NONCE}] {workload.prompt}" if is_marked else workload.prompt
    content: Any = [*parts, chat.text_part(text)] if parts else text
    messages: list[Json] = [{"role": "system", "content": workload.system}] if workload.system is not None else []
    video = (
        {"fps": workload.fps} if workload.fps else {"num_frames": workload.num_frames} if workload.num_frames else {}
    )
    processing: Json = {"max_pixels": workload.max_pixels} if workload.max_pixels and parts else {}
    if is_video and clip.sends_audio:  # vLLM answers 400 where it is asked for a sound that is not there
        processing["use_audio_in_video"] = True
    given = {"max_completion_tokens": workload.max_completion_tokens, "top_p": workload.top_p, "seed": workload.seed}
    streams = workload.stream and can_stream
    counting = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    body = chat.chat_body(
        model=workload.model,
        messages=[*messages, chat.user_message(content)],
        temperature=workload.temperature,
        max_tokens=workload.max_tokens,
        response_format=None if schema is None else chat.json_schema_format("answer", schema),
        media_io_kwargs={"video": video} if video and is_video else None,
        mm_processor_kwargs=processing or None,
        stream=streams,
        extra={name: value for name, value in given.items() if value is not None}
        | (counting if streams and workload.per_chunk_usage else {})
        | workload.extra,
    )
    return ({"thread_id": bodies.THREAD} if workload.threads else {}) | body


def validity(schema: Json) -> Callable[[str], bool]:
    """Whether an answer's text is JSON that keeps to ``schema``."""
    from vision_bench.answers.schema import validator  # noqa: PLC0415 - needed by few workloads, and not cheap

    checker = validator(schema)

    def is_valid(text: str) -> bool:
        try:
            return bool(checker.is_valid(parse_json(text)))
        except ValueError:
            return False

    return is_valid


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as film:
            return hashlib.file_digest(film, "sha256").hexdigest()
    except OSError as problem:
        raise InvalidRequest(f"film {path} cannot be read: {problem}") from problem


def _read_labels(path: Path, workload: ChatWorkload, items: tuple[str, ...], files: dict[str, str]) -> Json:
    from vision_bench.answers.labels import read_labels  # noqa: PLC0415 - needed by few workloads, and not cheap

    labels = read_labels(path, select=workload.facts)
    facts = labels.of_items(items)
    files[labels.name] = labels.sha256
    return {"name": labels.name, "facts": {item: [fact.as_json() for fact in of] for item, of in facts.items()}}


def _read_schema(path: Path, files: dict[str, str]) -> Json:
    from vision_bench.answers.schema import check  # noqa: PLC0415 - needed by few workloads, and not cheap

    try:
        data = path.read_bytes()[: MAX_SCHEMA_BYTES + 1]
        schema = json.loads(data)
        if not isinstance(schema, dict):
            raise ValueError(f"it holds {type(schema).__name__}, not an object")
        check(schema)
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"schema {path} cannot be used: {problem}") from problem
    files[path.name] = hashlib.sha256(data).hexdigest()
    return schema
