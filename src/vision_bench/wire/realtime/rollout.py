"""How many frames a chunk holds, how many chunks a request gives, and what a camera script looks like.

Two facts of the model decide all of it (docs/realtime.md derives the numbers): one autoregressive step commits three
latent frames and is streamed as one chunk; the causal video decoder turns the first latent frame of a session into one
picture and each later one into four.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FRAMES_PER_BLOCK = 3
"""Latent frames that one step commits, hence latent frames, and action lists, in a chunk."""
TEMPORAL_COMPRESSION = 4
"""Pictures that the decoder makes of a latent frame, the session's first excepted: that one gives a single picture."""
ATTENTION_FRAMES = 9 + 9
"""Latent frames that self-attention sees once its window is full: the sink's and the recent ones."""
SATURATION_CHUNKS = ATTENTION_FRAMES // FRAMES_PER_BLOCK
"""Chunks until that window is full; before, each chunk attends over more than the one before and costs more."""


def num_frames_for_chunks(num_chunks: int) -> int:
    """Pictures of a rollout of exactly ``num_chunks`` chunks: 9, 21, 33, ... (12 n - 3).

    Raises:
        ValueError: fewer than one chunk.
    """
    if num_chunks < 1:
        raise ValueError(f"num_chunks is {num_chunks}; a rollout has at least 1 chunk.")
    return (num_chunks * FRAMES_PER_BLOCK - 1) * TEMPORAL_COMPRESSION + 1


def chunks_for_num_frames(num_frames: int) -> int:
    """Chunks that a server generates for ``num_frames`` pictures; what does not fill a chunk is not generated.

    The inverse of :func:`num_frames_for_chunks` on the counts that it returns; 0 for fewer than nine pictures.

    Raises:
        ValueError: fewer than one picture.
    """
    if num_frames < 1:
        raise ValueError(f"num_frames is {num_frames}; ask for at least 1 frame.")
    return ((num_frames - 1) // TEMPORAL_COMPRESSION + 1) // FRAMES_PER_BLOCK


def pixel_frames_in_chunk(chunk_index: int) -> int:
    """Pictures in chunk ``chunk_index``: 9 in the first one of a session, 12 in every other.

    Raises:
        ValueError: a negative index.
    """
    if chunk_index < 0:
        raise ValueError(f"chunk_index is {chunk_index}; chunks are counted from 0.")
    if chunk_index == 0:
        return (FRAMES_PER_BLOCK - 1) * TEMPORAL_COMPRESSION + 1
    return FRAMES_PER_BLOCK * TEMPORAL_COMPRESSION


def check_camera_script(script: Sequence[Any]) -> list[list[list[str]]]:
    """``script`` as plain lists: a list a chunk, of three lists (one a latent frame), of key names.

    The names themselves are not looked at: which keys exist is the server's to say.

    Raises:
        ValueError: no chunk at all, or a place that holds something else; the message names the place.
    """
    if not _is_list(script):
        raise ValueError(f"camera_action_script is {type(script).__name__}; it is a list with one entry a chunk.")
    if not script:
        raise ValueError("camera_action_script is empty; give one entry a chunk.")
    return [_check_chunk(index, actions) for index, actions in enumerate(script)]


def _check_chunk(chunk_index: int, actions: Any) -> list[list[str]]:
    place = f"camera_action_script[{chunk_index}]"
    if not _is_list(actions):
        raise ValueError(f"{place} is {type(actions).__name__}; a chunk is a list of {FRAMES_PER_BLOCK} action lists.")
    if len(actions) != FRAMES_PER_BLOCK:
        raise ValueError(f"{place} has {len(actions)} action lists; one a latent frame makes {FRAMES_PER_BLOCK}.")
    return [_check_frame(f"{place}[{index}]", keys) for index, keys in enumerate(actions)]


def _check_frame(place: str, keys: Any) -> list[str]:
    if not _is_list(keys):
        raise ValueError(f"{place} is {type(keys).__name__}; it is a list of key names, empty to hold still.")
    for key in keys:
        if not isinstance(key, str):
            raise ValueError(f"{place} holds {key!r}; key names are strings.")
    return list(keys)


def _is_list(value: Any) -> bool:
    """Text is a sequence of its letters, which is never meant here."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
