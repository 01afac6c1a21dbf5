"""The ``baseline`` model: classical perception and no language model. It tells what it measured, and no more.

All of it happens in ``prepare``: pixels are freed before an answer waits for its turn, and a thread pool of a fixed
size bounds memory and CPU whatever arrives.
"""

from __future__ import annotations

import asyncio
import io
import os
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, MediaPart, Prepared, Token, pieces
from vision_bench.engine.chat.opening import DEFAULT_FPS, count_prompt
from vision_bench.engine.chat.perception.forms import answer, answer_without_media
from vision_bench.engine.chat.perception.libraries import require_extra
from vision_bench.engine.chat.perception.observation import Observation, SoundState, merged
from vision_bench.engine.chat.perception.picture import PictureFacts, look
from vision_bench.engine.chat.perception.sound import RATE, SoundFacts, listen, silero
from vision_bench.engine.chat.perception.text_on_screen import TextFacts, TextReader
from vision_bench.engine.chat.perception.wording import language_of
from vision_bench.engine.chat.tokens import VIDEO_MAX_PIXELS
from vision_bench.media.audio import decode_audio
from vision_bench.media.frames import DecodedFrames, decode_frames, fit_pixels
from vision_bench.media.probe import probe
from vision_bench.media.sampling import indices_at_fps, indices_of_count
from vision_bench.media.tracks import require_picture

MOST_PIXELS = 25_000_000
"""Of all sampled frames of one video together (75 MB). More frames than 32 therefore get fewer pixels each, as in
Qwen's own loader."""

FRAMES_READ = 3
"""Most frames of a video that are searched for text: 0.12 s each and more where there is some."""

Frame = NDArray[np.uint8]


class BaselineModel:
    """See the module.

    Args:
        workers: requests that are looked at at one time; one a core when not given.
        threads: cores that the text networks of one request use.

    Raises:
        MissingExtra: the extra ``baseline`` is not installed.
    """

    name = "baseline"

    def __init__(self, *, workers: int | None = None, threads: int = 1) -> None:
        require_extra()
        self._pool = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="baseline")
        self._reader = TextReader(threads=threads)

    async def prepare(self, request: ChatRequest) -> Prepared:
        """Look and listen, and write the answer; ``state`` is its text."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, request)

    async def generate(self, request: ChatRequest, prepared: Prepared, *, sample: int = 0) -> AsyncIterator[Token]:
        """The answer, the same for every sample: perception draws no lots."""
        tokens = pieces(prepared.state)
        for place, text in enumerate(tokens):
            yield Token(text, is_last=place == len(tokens) - 1)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: ChatRequest) -> Prepared:
        stages_ms: dict[str, float] = {}
        with _timed(stages_ms, "count"):
            count = count_prompt(request)
        language = language_of(f"{request.prompt} {request.system}")
        if request.media:
            text = answer(self._observe(request, stages_ms), request, language)
        else:
            text = answer_without_media(request, language)
        return Prepared(count.prompt_tokens, count.by_kind, text, stages_ms)

    def _observe(self, request: ChatRequest, stages_ms: dict[str, float]) -> Observation:
        pictures: list[PictureFacts] = []
        to_read: list[Frame] = []
        for part in request.media:
            if part.kind == "audio":
                continue
            with _timed(stages_ms, "decode"):
                decoded, duration_seconds = _frames_of(part, request)
            with _timed(stages_ms, "picture"):
                picture = look(decoded, duration_seconds=duration_seconds)
            pictures.append(picture)
            to_read += [decoded.frames[index].copy() for index in picture.worth_reading[:FRAMES_READ]]
        text: TextFacts | None = None
        if pictures:
            with _timed(stages_ms, "text"):
                text = self._reader.read(to_read)
        sound, state = _sound_of(request, stages_ms)
        return Observation(merged(pictures), text, sound, state)


def _frames_of(part: MediaPart, request: ChatRequest) -> tuple[DecodedFrames, float]:
    """The frames that the request lets the model see, and how long the clip lasts, seconds."""
    limit = request.max_pixels if request.max_pixels is not None and request.max_pixels > 0 else VIDEO_MAX_PIXELS
    if part.kind == "image":
        return DecodedFrames(_open_image(part.data, limit)[None], np.zeros(1)), 0.0
    fps = DEFAULT_FPS if request.fps is None else request.fps
    if part.frames:
        return _sent_frames(part.frames, request.num_frames, fps, limit)
    track = require_picture(probe(part.data, name="video"))
    indices = indices_at_fps(track.frames, float(track.fps or 1), fps)
    limit = max(1, min(limit, MOST_PIXELS // len(indices)))
    return decode_frames(part.data, indices=indices, max_pixels=limit), track.duration_seconds


def _sent_frames(
    sent: tuple[bytes, ...], num_frames: int | None, fps: float, limit: int
) -> tuple[DecodedFrames, float]:
    """``data:video/jpeg``: pictures without times, taken as ``fps`` a second. All are brought to the first's size."""
    every = num_frames is None or num_frames <= 0
    indices = indices_of_count(len(sent), -1 if every or num_frames is None else num_frames)
    limit = max(1, min(limit, MOST_PIXELS // len(indices)))
    pictures = [_open_image(sent[index], limit) for index in indices]
    height, width = pictures[0].shape[:2]
    same = [
        picture if picture.shape == pictures[0].shape else np.asarray(Image.fromarray(picture).resize((width, height)))
        for picture in pictures
    ]
    rate = fps if fps > 0 else DEFAULT_FPS
    return DecodedFrames(np.stack(same), np.array(indices, dtype=np.float64) / rate), len(sent) / rate


def _open_image(data: bytes, limit: int) -> Frame:
    try:
        with Image.open(io.BytesIO(data)) as image:
            upright = image.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        raise BadChatRequest("cannot identify image file") from None
    return np.asarray(upright.resize(fit_pixels(*upright.size, limit)))


def _sound_of(request: ChatRequest, stages_ms: dict[str, float]) -> tuple[SoundFacts | None, SoundState]:
    """What is heard: the sounds sent on their own, and those of videos where the request says so, one after another."""
    sounds = []
    state: SoundState = "absent"
    for part in request.media:
        if part.kind == "audio" or (part.kind == "video" and request.use_audio_in_video and not part.frames):
            with _timed(stages_ms, "decode_sound"):
                samples = decode_audio(part.data, rate=RATE)
            if samples is None:
                raise BadChatRequest("No audio stream found.")
            sounds.append(samples)
        elif part.kind == "video" and not part.frames:
            state = "withheld"
    if not sounds:
        return None, state
    with _timed(stages_ms, "sound"):
        return listen(np.concatenate(sounds), voice=silero()), "heard"


@contextmanager
def _timed(stages_ms: dict[str, float], stage: str) -> Iterator[None]:
    start_ns = time.monotonic_ns()
    yield
    stages_ms[stage] = stages_ms.get(stage, 0.0) + (time.monotonic_ns() - start_ns) / 1e6
