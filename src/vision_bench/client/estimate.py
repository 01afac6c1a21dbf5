"""What an analysis would cost, before anything is sent: bytes exactly, tokens by a rule, time by earlier answers.

The token rule is Qwen3-Omni's as vLLM serves it: frames at ``fps`` (even, 4 to 768), two frames a step, each step
``ceil(h/32) * ceil(w/32)`` tokens after the picture is scaled into 128 to 768 of them; sound 13 tokens a second. It
gives 840 for a 6-second 320x240 clip at 2 fps, which is what vLLM 0.32 counted, and 78 for its sound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from vision_bench import stats
from vision_bench.answers.analysis import Question
from vision_bench.answers.body import KEY_FRAMES, Options, build
from vision_bench.client.gateway import encode_body
from vision_bench.client.results import Results
from vision_bench.errors import InvalidMedia
from vision_bench.media.probe import probe
from vision_bench.media.sampling import indices_at_fps
from vision_bench.media.tracks import MediaInfo

TOKEN_SIDE = 32  # pixels of one visual token, after the 2x2 merge of 16-pixel patches
STEP_TOKENS = (128, 768)
AUDIO_TOKENS_A_SECOND = 13
LETTERS_A_TOKEN = 2.5  # between Korean (about 1.7) and English (about 4); the prompt is a small part of the whole


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a run.

    Args:
        unusable: clips that cannot be sent, with the reason.
        body_bytes: of all requests.
        prompt_tokens: estimated; ``max_completion_tokens`` is the limit, not an expectation.
        seconds: from the mean time of earlier answers in the results file; None without any.
        measured: earlier answers that ``seconds`` stands on.
    """

    clips: int
    unusable: tuple[str, ...]
    without_audio: int
    body_bytes: int
    prompt_tokens: int
    max_completion_tokens: int
    seconds: float | None
    measured: int


def estimate(
    clips: Sequence[Path],
    question: Question,
    options: Options,
    *,
    earlier: Results | None = None,
    concurrency: int = 4,
    on_clip: Callable[[], None] = lambda: None,
) -> Estimate:
    """Read every clip, build its body, send nothing.

    Args:
        earlier: answers from which the time is taken.
        concurrency: items that the gateway works on at once.
    """
    unusable: list[str] = []
    body_bytes = prompt_tokens = without_audio = usable = 0
    for clip in clips:
        on_clip()
        try:
            data = clip.read_bytes()
            info = probe(data, name=clip.name)
            built = build(data, clip.name, question, options)
        except (InvalidMedia, OSError) as problem:
            unusable.append(str(problem))
            continue
        usable += 1
        without_audio += not info.has_audio
        body_bytes += len(encode_body(built.body))
        prompt_tokens += _prompt_tokens(info, question, options)
    times = [
        line.elapsed_ms for line in (earlier.lines if earlier else ()) if line.is_ok and line.elapsed_ms is not None
    ]
    mean_ms = stats.summarise(times).mean
    return Estimate(
        clips=len(clips),
        unusable=tuple(unusable),
        without_audio=without_audio,
        body_bytes=body_bytes,
        prompt_tokens=prompt_tokens,
        max_completion_tokens=usable * options.max_tokens,
        seconds=None if mean_ms is None else mean_ms / 1000 * usable / concurrency,
        measured=len(times),
    )


def _prompt_tokens(info: MediaInfo, question: Question, options: Options) -> int:
    tokens = math.ceil(len(question.prompt) / LETTERS_A_TOKEN)
    video = info.video
    if video is not None:
        step = step_tokens(video.width, video.height)
        if options.sends_frames:
            tokens += step * (options.num_frames or KEY_FRAMES)
        else:
            tokens += step * math.ceil(_frames(video.frames, video.fps, options) / 2)
    if options.use_audio and info.has_audio:
        tokens += round(AUDIO_TOKENS_A_SECOND * info.duration_seconds)
    return tokens


def _frames(frame_count: int, source_fps: Fraction | None, options: Options) -> int:
    if options.num_frames is not None:
        return min(options.num_frames, frame_count)
    if not source_fps:
        return frame_count
    return len(indices_at_fps(frame_count, float(source_fps), options.wire_fps or 2.0))


def step_tokens(width: int, height: int) -> int:
    """Visual tokens of one pair of frames (or of one picture) of this size in pixels."""
    low, high = (count * TOKEN_SIDE**2 for count in STEP_TOKENS)
    area = width * height
    columns, rows = max(1, round(width / TOKEN_SIDE)), max(1, round(height / TOKEN_SIDE))
    if columns * rows * TOKEN_SIDE**2 > high:
        scale = math.sqrt(high / area)
        columns = max(1, math.floor(width * scale / TOKEN_SIDE))
        rows = max(1, math.floor(height * scale / TOKEN_SIDE))
    elif columns * rows * TOKEN_SIDE**2 < low:
        scale = math.sqrt(low / area)
        columns, rows = math.ceil(width * scale / TOKEN_SIDE), math.ceil(height * scale / TOKEN_SIDE)
    return columns * rows
