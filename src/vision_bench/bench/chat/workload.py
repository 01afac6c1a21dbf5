"""What is asked: a chat workload file, and its bodies, all bytes ready before the clock starts.

A body is a few shared buffers with, between them, the bytes that differ from request to request: a nonce, a thread's
name. Memory is the number of clips times their size, whatever the number of requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vision_bench.bench.workload import Common, WorkloadFile, fingerprint, require
from vision_bench.errors import InvalidRequest
from vision_bench.wire import chat
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]

MAX_SCHEMA_BYTES = 1024 * 1024
_NONCE = "\ue000nonce\ue000"  # of the private use area: no prompt holds it by accident, and JSON does not escape it
_THREAD = "\ue000thread\ue000"
_SLOT = re.compile(f"({_NONCE}|{_THREAD})".encode())


class ChatWorkload(Common, frozen=True, kw_only=True):
    """A chat workload, as its file says it (docs/workloads.md).

    Attributes:
        media: what accompanies the prompt; ``clips`` names the file or folder, relative to the workload file.
        max_tokens, max_completion_tokens: the output budget, sent under the name that was chosen.
        stream: ask for events; without them there is no TTFT.
        per_chunk_usage: ask for token counts with every event, which gives per-token ITL where the server obeys.
        cache: ``repeat`` sends the same bodies round after round; ``unique`` begins each text with a number of its own,
            so that no cache of an earlier request can serve it beyond the system prompt.
        threads: this many stable ``thread_id`` values, used in turn; 0 sends none.
        state: whether caches are meant to be warm or cold; a cold run that meets cached tokens is not called stable.
        schema: a JSON schema file that answers are held to.
        extra: further keys of the body, as they go on the wire.
    """

    model: str
    prompt: str
    media: Literal["none", "video", "image"]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    system: str | None = None
    clips: str | None = None
    fps: float | None = None
    num_frames: int | None = None
    max_pixels: int | None = None
    use_audio: bool = False
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stream: bool = True
    per_chunk_usage: bool = False
    cache: Literal["repeat", "unique"] = "repeat"
    threads: int = 0
    state: Literal["warm", "cold"] | None = None
    schema: str | None = None
    extra: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it

    def __post_init__(self) -> None:
        Common.__post_init__(self)
        require(self.kind == "chat", f"kind is {self.kind!r}, not 'chat'")
        budgets = [value for value in (self.max_tokens, self.max_completion_tokens) if value is not None]
        require(len(budgets) == 1, "give one of max_tokens and max_completion_tokens: an open end cannot be compared")
        require(budgets[0] >= 1, f"the output budget is {budgets[0]}; give 1 token or more")
        require(bool(self.model.strip()), "model is empty")
        require(bool(self.prompt.strip()), "prompt is empty")
        require((self.clips is None) == (self.media == "none"), f"media is {self.media!r}: {_clips_hint(self.media)}")
        require(self.fps is None or self.num_frames is None, "fps and num_frames exclude each other; give one")
        require(self.fps is None or self.fps > 0, "fps must be above 0")
        require(self.num_frames is None or self.num_frames >= 1, "num_frames must be 1 or more")
        require(self.max_pixels is None or self.max_pixels >= 1, "max_pixels must be 1 or more")
        require(self.threads >= 0, "threads must be 0 or more")
        only_video = [self.fps, self.num_frames, self.use_audio or None]
        require(self.media == "video" or not any(only_video), 'fps, num_frames and use_audio belong to media = "video"')
        require(
            self.cache == "repeat" or self.media == "none",
            'cache = "unique" changes the text alone, and caches know media by itself; use it with media = "none"',
        )
        require("stream" not in self.extra, "stream is a key of its own; take it out of extra")

    @property
    def media_shape(self) -> str:
        """The media in a few words, for a reader of a percentile."""
        if self.media != "video":
            return self.media if self.max_pixels is None else f"{self.media}, {self.max_pixels} pixels at most"
        rate = f"{self.fps:g} fps" if self.fps else f"{self.num_frames} frames" if self.num_frames else "server's fps"
        pixels = f", {self.max_pixels} pixels at most" if self.max_pixels else ""
        return f"video, {rate}{pixels}{', with sound' if self.use_audio else ''}"


def _clips_hint(media: str) -> str:
    return "leave clips out" if media == "none" else "clips must name a file or folder"


@dataclass(frozen=True, slots=True)
class Item:
    """What one request sends. ``sha256`` is equal for equal bodies; ``batch_size`` None is a single chat."""

    name: str
    buffers: tuple[bytes, ...]
    size_bytes: int
    sha256: str
    thread: str | None = None
    batch_size: int | None = None


@dataclass(frozen=True, slots=True)
class _Template:
    """A body cut at the places that differ: static bytes and slots in turn, beginning and ending with static ones."""

    name: str
    pieces: tuple[bytes, ...]
    digest: bytes

    def fill(self, values: dict[bytes, bytes]) -> tuple[tuple[bytes, ...], bytes]:
        """The buffers with their slots filled, and a digest of the whole."""
        if len(self.pieces) == 1:
            return self.pieces, self.digest
        buffers = tuple(values.get(piece, piece) for piece in self.pieces)
        filled = b"\0".join(values[piece] for piece in self.pieces if piece in values)
        return buffers, hashlib.sha256(self.digest + filled).digest()


class Bodies:
    """The bodies of a run: the same item for the same ordinal, always.

    Args:
        templates: one a clip, used in turn.
        salt: what makes this run's nonces its own; the run's seed.
        batch_size: bodies in one request; None sends single chats.
    """

    def __init__(self, templates: Sequence[_Template], *, threads: int, salt: str, batch_size: int | None) -> None:
        self._templates = templates
        self._threads = threads
        self._salt = salt
        self._batch_size = batch_size

    @property
    def count(self) -> int:
        """Different clips or texts."""
        return len(self._templates)

    def item(self, ordinal: int) -> Item:
        """What the request with this place in the run sends."""
        if self._batch_size is None:
            return self._single(ordinal)
        parts = [self._single(ordinal * self._batch_size + place) for place in range(self._batch_size)]
        buffers: list[bytes] = [b'{"items":[']
        for place, part in enumerate(parts):
            buffers += [b'%s{"id":"%d","body":' % (b"," if place else b"", place), *part.buffers, b"}"]
        buffers.append(b"]}")
        digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()[:16]
        name = parts[0].name if len(parts) == 1 else f"{parts[0].name} and {len(parts) - 1} more"
        return Item(name, tuple(buffers), sum(map(len, buffers)), digest, batch_size=self._batch_size)

    def probe(self, model: str) -> bytes:
        """A body of one word and one token, to learn whether a model is served."""
        return _encode(chat.chat_body(model=model, messages=[chat.user_message("Hi")], max_tokens=1))

    def _single(self, ordinal: int) -> Item:
        template = self._templates[ordinal % len(self._templates)]
        thread = f"bench-{ordinal % self._threads}" if self._threads else None
        nonce = hashlib.sha256(f"{self._salt}/{ordinal}".encode()).hexdigest()[:12]
        values = {_NONCE.encode(): nonce.encode(), _THREAD.encode(): (thread or "").encode()}
        buffers, digest = template.fill(values)
        return Item(template.name, buffers, sum(map(len, buffers)), digest.hex()[:16], thread)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload ready to be sent.

    Attributes:
        fingerprint: of the workload and of every file that it names.
        files: name to SHA-256 of those.
        schema: what answers are held to, or None.
        body_sha256: of each body in turn, with its slots empty.
    """

    workload: ChatWorkload
    bodies: Bodies
    fingerprint: str
    files: dict[str, str]
    schema: Json | None
    body_sha256: tuple[str, ...]


def prepare(file: WorkloadFile, *, can_stream: bool, salt: str, batch_size: int | None = None) -> Prepared:
    """Read and check a workload file and everything it names, and encode its bodies.

    Args:
        can_stream: the wire carries events; a batch does not.

    Raises:
        InvalidRequest: the file or something that it names is wrong.
        InvalidMedia: a clip that is no usable video.
    """
    workload = file.checked(ChatWorkload)
    files: dict[str, str] = {}
    schema = None if workload.schema is None else _read_schema(file.resolve(workload.schema), files)
    media = [("text", [], False)] if workload.clips is None else _media_parts(file, workload, files)
    bodies = [
        _template(name, _body(workload, parts, schema, has_audio=has_audio, can_stream=can_stream))
        for name, parts, has_audio in media
    ]
    return Prepared(
        workload,
        Bodies(bodies, threads=workload.threads, salt=salt, batch_size=batch_size),
        fingerprint(workload, files),
        files,
        schema,
        tuple(template.digest.hex()[:16] for template in bodies),
    )


def _body(workload: ChatWorkload, parts: list[Json], schema: Json | None, *, has_audio: bool, can_stream: bool) -> Json:
    text = f"[{_NONCE}] {workload.prompt}" if workload.cache == "unique" else workload.prompt
    content: Any = [*parts, chat.text_part(text)] if parts else text
    messages: list[Json] = [{"role": "system", "content": workload.system}] if workload.system is not None else []
    video = (
        {"fps": workload.fps} if workload.fps else {"num_frames": workload.num_frames} if workload.num_frames else {}
    )
    processing: Json = {"max_pixels": workload.max_pixels} if workload.max_pixels and parts else {}
    if workload.use_audio and has_audio:  # vLLM answers 400 where it is asked for a sound that is not there
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
        media_io_kwargs={"video": video} if video else None,
        mm_processor_kwargs=processing or None,
        stream=streams,
        extra={name: value for name, value in given.items() if value is not None}
        | (counting if streams and workload.per_chunk_usage else {})
        | workload.extra,
    )
    return ({"thread_id": _THREAD} if workload.threads else {}) | body


def _encode(body: Json) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as problem:  # TOML knows dates and infinities; JSON does not
        raise InvalidRequest(f"the body cannot be written as JSON: {problem}; look at extra") from problem


def _template(name: str, body: Json) -> _Template:
    encoded = _encode(body)
    return _Template(name, tuple(_SLOT.split(encoded)), hashlib.sha256(encoded).digest())


def _media_parts(
    file: WorkloadFile, workload: ChatWorkload, files: dict[str, str]
) -> list[tuple[str, list[Json], bool]]:
    """Name, content parts and whether there is sound, for every clip or picture."""
    folder = file.resolve(workload.clips or "")
    endings, encode = _KINDS[workload.media]
    found = (
        sorted(path for path in folder.rglob("*") if path.suffix.lower() in endings) if folder.is_dir() else [folder]
    )
    kept = [path for path in found if path.is_file() and not path.name.startswith(".")]
    if not kept:
        raise InvalidRequest(f"{file.path}: no {' or '.join(endings)} file under {folder}; set clips")
    media = []
    for path in kept:
        data = path.read_bytes()
        files[path.name] = hashlib.sha256(data).hexdigest()
        part, has_audio = encode(data, path)
        media.append((path.name, [part], has_audio))
    return media


def _video(data: bytes, path: Path) -> tuple[Json, bool]:
    from vision_bench.media.probe import probe, require_picture  # noqa: PLC0415 - 60 MB that a text workload does without

    info = probe(data, name=path.name)
    require_picture(info)
    return chat.video_part(_uri(data, "video/mp4")), info.has_audio


def _image(data: bytes, path: Path) -> tuple[Json, bool]:
    is_png = data.startswith(b"\x89PNG")
    if not is_png and not data.startswith(b"\xff\xd8"):
        raise InvalidRequest(f"{path.name} is neither PNG nor JPEG; convert it")
    return chat.image_part(_uri(data, "image/png" if is_png else "image/jpeg")), False


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[bytes, Path], tuple[Json, bool]]]] = {
    "video": ((".mp4",), _video),
    "image": ((".jpg", ".jpeg", ".png"), _image),
}


def _uri(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


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
