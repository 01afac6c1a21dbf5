"""One clip and one question as a chat body, in the dialect of the server that will read it.

`from_video` sends the MP4 whole, as one part: picture and sound stay in step by themselves. `from_frames_audio` sends
three JPEG key frames and one WAV, four parts: for servers that read no video. docs/decisions/0003 compares them.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from typing import Any, Literal

from vision_bench.answers.analysis import Json, Question, fingerprint
from vision_bench.errors import InvalidRequest
from vision_bench.media.audio import decode_audio
from vision_bench.media.encode import data_uri, jpeg, wav
from vision_bench.media.frames import decode_frames
from vision_bench.media.probe import probe
from vision_bench.media.sampling import indices_of_count
from vision_bench.media.tracks import require_picture
from vision_bench.wire import chat

Dialect = Literal["vllm", "sglang", "openai"]
Send = Literal["video", "frames"]

DEFAULT_FPS = 2.0
KEY_FRAMES = 3
AUDIO_RATE = 16_000  # samples a second: what speech encoders resample to anyway

NO_AUDIO = "no_audio"
"""Warning: the clip has no sound track, so sound was not asked for."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a clip is asked about: everything of the body that is neither clip nor question.

    Args:
        fps: frames a second to look at; None and ``num_frames`` None give 2.0.
        num_frames: look at this many instead. vLLM's Qwen loader heeds it for JPEG frames, not for an MP4.
        temperature: above 0.3 the captured answers drift into letters of other scripts.
        use_audio: ask for the sound too, where a clip has any.
        send: ``video`` or ``frames``; a plain OpenAI server reads no video, so ``openai`` always sends frames.

    Raises:
        InvalidRequest: fps and num_frames together, or a number out of range.
    """

    model: str = "qwen"
    fps: float | None = None
    num_frames: int | None = None
    temperature: float = 0.3
    max_tokens: int = 1024
    use_audio: bool = True
    dialect: Dialect = "vllm"
    send: Send = "video"

    def __post_init__(self) -> None:
        if self.fps is not None and self.num_frames is not None:
            raise InvalidRequest(f"fps {self.fps} and num_frames {self.num_frames} exclude each other; give one")
        if self.fps is not None and not self.fps > 0:
            raise InvalidRequest(f"fps must be above 0, got {self.fps}")
        if self.num_frames is not None and self.num_frames < 1:
            raise InvalidRequest(f"num_frames must be at least 1, got {self.num_frames}")
        if not 0 <= self.temperature <= 2:
            raise InvalidRequest(f"temperature must be within 0 and 2, got {self.temperature}")
        if self.max_tokens < 1:
            raise InvalidRequest(f"max_tokens must be at least 1, got {self.max_tokens}")

    @property
    def sends_frames(self) -> bool:
        """Whether the clip leaves as pictures and a WAV."""
        return self.send == "frames" or self.dialect == "openai"

    @property
    def wire_fps(self) -> float | None:
        """The frame rate that the body names; None where it names a count, or where pictures are sent."""
        if self.sends_frames or self.num_frames is not None:
            return None
        return DEFAULT_FPS if self.fps is None else self.fps

    def fingerprint(self, question: Question) -> str:
        """Twelve hex digits that change with anything that could change an answer, save the clip."""
        return fingerprint([asdict(self), asdict(question)])


@dataclass(frozen=True, slots=True)
class ClipBody:
    """A body, whether it asks for the clip's sound, and what the reader of the result should know."""

    body: Json
    use_audio_in_video: bool
    warnings: tuple[str, ...]


def build(clip: bytes, name: str, question: Question, options: Options) -> ClipBody:
    """The body for a clip's bytes; ``name`` is what an error calls it.

    Raises:
        InvalidMedia: not a usable video.
    """
    info = probe(clip, name=name)
    require_picture(info)
    builder = from_frames_audio if options.sends_frames else from_video
    return builder(clip, question, options, has_audio=info.has_audio)


def from_video(mp4: bytes, question: Question, options: Options, *, has_audio: bool) -> ClipBody:
    """The whole MP4 as one ``video_url`` part, then the prompt.

    A clip without a sound track never gets ``use_audio_in_video``: vLLM answers that with 400. It is listed in the
    warnings instead.
    """
    use_audio = options.use_audio and has_audio
    parts = [chat.video_part(data_uri(mp4, "video/mp4")), chat.text_part(question.prompt)]
    body = _body(parts, question, options, **_sampling(options, use_audio))
    warnings = list(_audio_warnings(options, has_audio))
    if options.dialect == "sglang":
        warnings.append('fps_not_sent: sglang takes it at start, --mm-process-config \'{"video": {"fps": 2}}\'')
    return ClipBody(body, use_audio, tuple(warnings))


def from_frames_audio(mp4: bytes, question: Question, options: Options, *, has_audio: bool) -> ClipBody:
    """Key frames as ``image_url`` parts (first to last, evenly spread), the sound as one WAV, then the prompt."""
    use_audio = options.use_audio and has_audio
    count = options.num_frames or KEY_FRAMES
    indices = indices_of_count(require_picture(probe(mp4)).frames, count)
    frames = decode_frames(mp4, indices=indices).frames
    parts = [chat.image_part(data_uri(jpeg(frame), "image/jpeg")) for frame in frames]
    samples = decode_audio(mp4, rate=AUDIO_RATE) if use_audio else None
    if samples is not None:
        parts.append(chat.audio_part(base64.b64encode(wav(samples, AUDIO_RATE)).decode()))
    parts.append(chat.text_part(question.prompt))
    kwargs = {} if options.dialect == "openai" else {"chat_template_kwargs": {"enable_thinking": False}}
    return ClipBody(_body(parts, question, options, **kwargs), False, _audio_warnings(options, has_audio))


def _audio_warnings(options: Options, has_audio: bool) -> tuple[str, ...]:
    return (NO_AUDIO,) if options.use_audio and not has_audio else ()


def _sampling(options: Options, use_audio: bool) -> dict[str, Any]:
    """The keys that say how to look and whether to listen, where this dialect keeps them."""
    no_thinking = {"chat_template_kwargs": {"enable_thinking": False}}
    if options.dialect == "sglang":
        # SGLang has the switch at the top level and no per-request frame rate.
        return no_thinking | ({"extra": {"use_audio_in_video": True}} if use_audio else {})
    fps = options.wire_fps
    video = {"num_frames": options.num_frames} if fps is None else {"fps": fps}
    listening = {"mm_processor_kwargs": {"use_audio_in_video": True}} if use_audio else {}
    return {"media_io_kwargs": {"video": video}} | listening | no_thinking


def _body(parts: list[Json], question: Question, options: Options, **kwargs: Any) -> Json:
    response_format = None
    if question.schema is not None:
        schema = question.schema if options.dialect != "openai" else _without_lengths(question.schema)
        response_format = chat.json_schema_format(question.schema_name, schema)
    return chat.chat_body(
        model=options.model,
        messages=[chat.user_message(parts)],
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        response_format=response_format,
        **kwargs,
    )


def _without_lengths(schema: Any) -> Any:
    """``schema`` without the string limits that OpenAI's strict mode refuses; our own validation still holds them."""
    if isinstance(schema, dict):
        return {
            key: _without_lengths(value)
            for key, value in schema.items()
            if not (key in ("minLength", "maxLength") and isinstance(value, int))
        }
    return [_without_lengths(item) for item in schema] if isinstance(schema, list) else schema
