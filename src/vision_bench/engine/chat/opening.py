"""Whether the media of a request opens, and how many tokens it makes. Reads packets and headers; decodes no picture."""

from __future__ import annotations

import io
from dataclasses import dataclass

from PIL import Image, UnidentifiedImageError

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, MediaPart
from vision_bench.engine.chat.tokens import (
    SOUND_IN_VIDEO_MARKERS,
    TEMPLATE_TOKENS,
    Size,
    audio_tokens,
    image_tokens,
    text_tokens,
    video_tokens,
)
from vision_bench.errors import InvalidMedia
from vision_bench.media.probe import probe
from vision_bench.media.sampling import indices_at_fps
from vision_bench.media.tracks import MediaInfo

DEFAULT_FPS = 2.0
"""What Qwen's loader takes from a video when nobody says otherwise, frames a second."""


@dataclass(frozen=True, slots=True)
class PromptCount:
    """Tokens of a prompt. ``by_kind`` is vLLM's ``multimodal_tokens``; ``visual`` those that the encoder makes."""

    prompt_tokens: int
    by_kind: dict[str, int]
    visual: int


def count_prompt(request: ChatRequest) -> PromptCount:
    """Open every part and count. Takes milliseconds a megabyte: call it in a thread.

    Raises:
        BadChatRequest: media that does not open, in vLLM's words.
    """
    by_kind: dict[str, int] = {}
    total = visual = 0
    for part in request.media:
        if part.kind == "video":
            picture, sound = _video(part, request)
            span = picture + sound
            by_kind["video"] = by_kind.get("video", 0) + span
            if sound:  # the same span is counted under both names
                by_kind["audio"] = by_kind.get("audio", 0) + span
            visual += picture
        elif part.kind == "image":
            span = image_tokens(image_size(part.data), max_pixels=request.max_pixels)
            by_kind["image"] = by_kind.get("image", 0) + span
            visual += span
        else:
            span = audio_tokens(_sound_seconds(part.data))
            by_kind["audio"] = by_kind.get("audio", 0) + span
        total += span
    text = text_tokens(request.prompt) + text_tokens(request.system)
    return PromptCount(TEMPLATE_TOKENS + text + total, by_kind, visual)


def _video(part: MediaPart, request: ChatRequest) -> tuple[int, int]:
    """Tokens of the picture, and of the sound inside it with its markers (0 when not asked for)."""
    if part.frames:
        if request.use_audio_in_video:
            raise BadChatRequest("No audio stream found.")
        count = len(part.frames)
        if request.num_frames is not None and 0 < request.num_frames < count:
            count = request.num_frames
        return video_tokens(count, image_size(part.frames[0]), max_pixels=request.max_pixels), 0
    info = open_video(part.data)
    track = info.video
    if track is None:  # open_video has seen to it
        raise BadChatRequest("Could not open video stream")
    sound = 0
    if request.use_audio_in_video:
        if not info.has_audio:
            raise BadChatRequest("No audio stream found.")
        seconds = next(track.duration_seconds for track in info.audio if track.packets)
        sound = audio_tokens(seconds) + SOUND_IN_VIDEO_MARKERS
    wanted = DEFAULT_FPS if request.fps is None else request.fps
    rate = float(track.fps) if track.fps else 1.0
    frames = len(indices_at_fps(track.frames, rate, wanted))
    return video_tokens(frames, Size(track.height, track.width), max_pixels=request.max_pixels), sound


def open_video(data: bytes) -> MediaInfo:
    """What a video file holds.

    Raises:
        BadChatRequest: it does not open, or has no picture.
    """
    try:
        info = probe(data, name="video")
    except InvalidMedia:
        info = None
    if info is None or info.video is None:
        raise BadChatRequest("Could not open video stream")
    return info


def image_size(data: bytes) -> Size:
    """The size in a picture's header.

    Raises:
        BadChatRequest: it is no picture.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            return Size(image.height, image.width)
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError):
        raise BadChatRequest("cannot identify image file") from None


def _sound_seconds(data: bytes) -> float:
    try:
        info = probe(data, name="audio")
    except InvalidMedia as error:
        raise BadChatRequest(f"Could not open audio stream: {error}") from None
    if not info.has_audio:
        raise BadChatRequest("No audio stream found.")
    return next(track.duration_seconds for track in info.audio if track.packets)
