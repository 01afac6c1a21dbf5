"""What each chunk is made under: prompt, camera, and which events started, are at work and came to an end with it.

An event takes effect some chunks after it came. The engine takes events between two calls and applies them at the end
of the call after, for the chunk that follows; so one that comes while chunk j is being made changes chunk j + 2 first,
and a viewer who has just received chunk k (k + 1 is being made) sees it on k + 3. ``pipeline_chunks`` is that 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vision_bench.engine.realtime.pose import ORIGIN, Pose, between, moved
from vision_bench.wire.realtime.camera import CameraCommand, command_for_keys, read_camera
from vision_bench.wire.realtime.control import Interaction
from vision_bench.wire.realtime.rollout import FRAMES_PER_BLOCK

PROMPT_TRANSITION_CHUNKS = 3
CAMERA_TRANSITION_CHUNKS = 1


class EngineFailure(Exception):
    """The engine cannot go on with the session; the text is what the client is told, after it was told "queued"."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """One chunk's."""

    index: int
    prompt: str
    """The newest prompt that has begun to have an effect."""
    prompt_share: float
    """How much of the effect it has: 1 when the transition to it is over."""
    poses: tuple[Pose, ...]
    """(3,) the camera at each latent frame."""
    started_event_ids: tuple[str, ...]
    active_event_ids: tuple[str, ...]
    completed_event_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An event and the first chunk that it will change."""

    chunk: int
    event_id: str
    prompt: str | None
    command: CameraCommand | None
    transition_chunks: int | None


@dataclass(frozen=True, slots=True)
class _PromptEffect:
    event_id: str
    first_chunk: int
    chunks: int


@dataclass(frozen=True, slots=True)
class _CameraEffect:
    event_id: str
    command: CameraCommand
    first_chunk: int
    chunks: int
    start: Pose


class Conditioning:
    """One rollout's. Chunks are asked for in order, events are submitted in between."""

    def __init__(
        self,
        *,
        prompt: str,
        num_chunks: int,
        capabilities: frozenset[str],
        script: Sequence[Sequence[Sequence[str]]] | None = None,
        pipeline_chunks: int = 3,
    ) -> None:
        """``capabilities`` is what the model can be told in mid-session, of ``prompt`` and ``camera``; with a
        ``script`` the camera follows it and takes no events.
        """
        if pipeline_chunks < 2:
            raise ValueError(
                f"pipeline_chunks is {pipeline_chunks}; the chunk being made cannot be changed any more: 2."
            )
        self._num_chunks = num_chunks
        self._capabilities = capabilities
        self._script = script
        self._delay = pipeline_chunks - 1
        self._text = prompt
        self._waiting: list[_Waiting] = []
        self._prompt: _PromptEffect | None = None
        self._camera: _CameraEffect | None = None
        self._pose = ORIGIN

    def submit(self, event_id: str, interaction: Interaction, *, generating: int | None) -> None:
        """Take an event that came while chunk ``generating`` was being made; None before the request was encoded.

        Raises:
            EngineFailure: the model knows no such event, a pose is none, a script steers the camera, or the event came
                before the request was encoded or during its last chunk.
        """
        if generating is None:
            raise EngineFailure(f"Interaction {event_id!r} arrived before the request was prepared")
        if generating >= self._num_chunks - 1:
            # The request's state is dropped at the end of its last call, before the event would be looked at.
            raise EngineFailure(f"No active request for interaction {event_id!r}")
        wanted = {*interaction.modalities, *(["prompt"] if interaction.prompt is not None else [])}
        unknown = sorted(wanted - self._capabilities)
        if unknown:
            raise EngineFailure(f"Unsupported interaction modality: {unknown[0]}")
        command = None
        if "camera" in interaction.modalities:
            if self._script is not None:
                raise EngineFailure("Camera interactions cannot be combined with camera_action_script")
            try:
                command = read_camera(interaction.modalities["camera"])
            except ValueError as problem:
                raise EngineFailure(str(problem)) from problem
        self._waiting.append(
            _Waiting(generating + self._delay, event_id, interaction.prompt, command, interaction.transition_chunks)
        )

    def next_chunk(self, index: int) -> Conditions:
        """The conditions of chunk ``index``; call it once for each, in order."""
        due = [event for event in self._waiting if event.chunk <= index]
        self._waiting = [event for event in self._waiting if event.chunk > index]
        # Of several events at one boundary the last prompt and the last camera command count.
        prompt = next((event for event in reversed(due) if event.prompt is not None), None)
        camera = next((event for event in reversed(due) if event.command is not None), None)
        replaced = self._begin(index, prompt, camera)
        poses = tuple(self._frame_pose(index, frame) for frame in range(FRAMES_PER_BLOCK))
        share = self._prompt_share(index)
        active = self._alive()
        ended = self._finish(index)
        still_alive = self._alive()
        return Conditions(
            index=index,
            prompt=self._text,
            prompt_share=share,
            poses=poses,
            started_event_ids=_once(event.event_id for event in due if event in (prompt, camera)),
            active_event_ids=_once(active),
            completed_event_ids=_once(event_id for event_id in [*replaced, *ended] if event_id not in still_alive),
        )

    def _begin(self, index: int, prompt: _Waiting | None, camera: _Waiting | None) -> list[str]:
        """Put events into effect; gives the id of the camera command that this replaces.

        A prompt that is replaced before its transition is over is not given: it is never reported as completed.
        """
        replaced = []
        if prompt is not None and prompt.prompt is not None:
            self._text = prompt.prompt
            chunks = PROMPT_TRANSITION_CHUNKS if prompt.transition_chunks is None else prompt.transition_chunks
            self._prompt = _PromptEffect(prompt.event_id, index, chunks)
        if camera is not None and camera.command is not None:
            if self._camera is not None:
                replaced.append(self._camera.event_id)
            chunks = CAMERA_TRANSITION_CHUNKS if camera.transition_chunks is None else camera.transition_chunks
            self._camera = _CameraEffect(camera.event_id, camera.command, index, chunks, self._pose)
        return replaced

    def _alive(self) -> list[str]:
        return [effect.event_id for effect in (self._prompt, self._camera) if effect is not None]

    def _frame_pose(self, index: int, frame: int) -> Pose:
        """Move the camera on by one latent frame. The session's first is the picture that was given: nothing moved."""
        if index == 0 and frame == 0:
            return self._pose
        if self._script is not None:
            self._pose = moved(self._pose, command_for_keys(self._script[index][frame]))
        elif self._camera is not None:
            self._pose = self._camera_pose(self._camera, index, frame)
        return self._pose

    def _camera_pose(self, camera: _CameraEffect, index: int, frame: int) -> Pose:
        if camera.command.mode == "velocity":
            return moved(self._pose, camera.command)
        target = Pose(camera.command.translation, camera.command.rotation)
        frames = camera.chunks * FRAMES_PER_BLOCK
        gone = (index - camera.first_chunk) * FRAMES_PER_BLOCK + frame + 1
        return target if gone >= frames else between(camera.start, target, gone / frames)

    def _prompt_share(self, index: int) -> float:
        if self._prompt is None or self._prompt.chunks == 0:
            return 1.0
        return (index - self._prompt.first_chunk + 1) / self._prompt.chunks

    def _finish(self, index: int) -> list[str]:
        """Let go of what has come to its end with this chunk, and give its ids. A velocity ends only by replacement."""
        ended = []
        prompt, camera = self._prompt, self._camera
        if prompt is not None and _is_last(prompt.first_chunk, prompt.chunks, index):
            ended.append(prompt.event_id)
            self._prompt = None
        has_target = camera is not None and camera.command.mode == "target"
        if camera is not None and has_target and _is_last(camera.first_chunk, camera.chunks, index):
            ended.append(camera.event_id)
            self._camera = None
        return ended


def _is_last(first_chunk: int, chunks: int, index: int) -> bool:
    """Without a transition the first chunk is the last."""
    return index >= first_chunk + max(chunks, 1) - 1


def _once(ids: Iterable[str]) -> tuple[str, ...]:
    """Each id once, in the order in which they came: an event may have changed prompt and camera."""
    return tuple(dict.fromkeys(ids))
