"""What a client may send once a session runs: an interaction, a ping, a stop. Both sides: made here, and read here.

A message that is refused costs nothing: the session goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vision_bench.wire.shapes import Json, parse_json

MAX_CONTROL_CHARACTERS = 128 * 1024
PING: Json = {"type": "session.ping"}
STOP: Json = {"type": "session.stop"}


class ControlRefused(ValueError):
    """The text is what the client is told; the session goes on."""


@dataclass(frozen=True, slots=True)
class Ping:
    """The client is there: the stall clock starts again."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The client has seen enough."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """A change of prompt, of camera, or of both, in a form that the engine will look at."""

    event_id: str | None
    """None: the server makes one up."""
    prompt: str | None
    modalities: Json
    """Payloads by modality, each an object; what is in them is the engine's to judge."""
    transition_chunks: int | None

    def to_message(self) -> Json:
        """The message that says this."""
        event: Json = {}
        if self.prompt is not None:
            event["prompt"] = self.prompt
        if self.modalities:
            event["multi_modal_data"] = self.modalities
        interaction: Json = {"event": event}
        if self.event_id is not None:
            interaction["event_id"] = self.event_id
        if self.transition_chunks is not None:
            interaction["transition_chunks"] = self.transition_chunks
        return {"type": "session.interaction", "interaction": interaction}


def camera_interaction(
    *,
    event_id: str,
    mode: str = "velocity",
    translation: Sequence[float] = (0.0, 0.0, 0.0),
    rotation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    transition_chunks: int | None = None,
) -> Interaction:
    """Move the camera: by this a latent frame until replaced (``velocity``), or to there (``target``).

    +X is right, +Y up, +Z forward, the origin the session's start; the rotation is a quaternion x, y, z, w.
    """
    data = {"translation": list(translation), "rotation": list(rotation)}
    return Interaction(event_id, None, {"camera": {"mode": mode, "data": data}}, transition_chunks)


def read_control(message: str) -> Ping | Stop | Interaction:
    """What a text message of a running session means.

    Raises:
        ControlRefused: too long, not JSON, not an object, an unknown type, or an interaction that says nothing clear.
    """
    if len(message) > MAX_CONTROL_CHARACTERS:
        raise ControlRefused("control message too large")
    try:
        given = parse_json(message)
    except ValueError:
        raise ControlRefused("Invalid JSON message") from None
    if not isinstance(given, dict):
        raise ControlRefused("WebSocket messages must be JSON objects")
    match given.get("type"):
        case "session.ping":
            return Ping()
        case "session.stop":
            return Stop()
        case "session.interaction":
            return _read_interaction(given.get("interaction"))
        case other:
            raise ControlRefused(f"Unknown message type: {other}")


def _read_interaction(interaction: Any) -> Interaction:
    if not isinstance(interaction, dict):
        raise ControlRefused("session.interaction requires an interaction object")
    event_id = interaction.get("event_id")
    if event_id is not None and not (isinstance(event_id, str) and event_id):
        raise ControlRefused("session.interaction event_id must be a non-empty string")
    event = interaction.get("event")
    if not isinstance(event, dict):
        raise ControlRefused("session.interaction requires event object")
    prompt = _read_prompt(event.get("prompt"))
    modalities = _read_modalities(event.get("multi_modal_data"))
    if prompt is None and not modalities:
        raise ControlRefused("session.interaction requires a non-empty event.prompt or event.multi_modal_data")
    if event.get("negative_prompt") is not None:
        raise ControlRefused("session.interaction negative_prompt is not supported in this release")
    return Interaction(event_id, prompt, modalities, _read_transition(interaction.get("transition_chunks")))


def _read_prompt(prompt: Any) -> str | None:
    if prompt is None:
        return None
    if not isinstance(prompt, str) or not prompt.strip():
        raise ControlRefused("session.interaction requires a non-empty event.prompt")
    return prompt


def _read_modalities(modalities: Any) -> Json:
    if modalities is None:
        return {}
    if not isinstance(modalities, dict) or not modalities:
        raise ControlRefused("session.interaction event.multi_modal_data must be a non-empty object")
    for name, payload in modalities.items():
        if not isinstance(payload, dict):
            raise ControlRefused(f"session.interaction event.multi_modal_data.{name} must be an object")
    return modalities


def _read_transition(chunks: Any) -> int | None:
    if chunks is None:
        return None
    is_whole = isinstance(chunks, int) or (isinstance(chunks, float) and chunks.is_integer())
    if isinstance(chunks, bool) or not is_whole:
        raise ControlRefused("session.interaction transition_chunks must be an integer")
    if chunks < 0:
        raise ControlRefused("session.interaction transition_chunks must be >= 0")
    return int(chunks)
