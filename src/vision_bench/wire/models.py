"""A ``/v1/models`` answer as (id, state), leaving out what a gateway must not leak (``root`` is a path on its disk)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Model:
    """One served model. ``max_model_len`` is in tokens, None where the server does not say."""

    id: str
    state: Literal["ready", "unavailable"] = "ready"
    max_model_len: int | None = None


def read_models(body: object) -> list[Model]:
    """Models of an OpenAI-shaped list, in the server's order. vLLM lists a model only when it can answer.

    Raises:
        ValueError: not such a list.
    """
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        raise ValueError("the model list has no 'data' array")
    return [
        Model(id=item["id"], state=_state(item), max_model_len=_length(item))
        for item in data
        if isinstance(item, dict) and isinstance(item.get("id"), str)
    ]


def _length(item: dict[str, Any]) -> int | None:
    length = item.get("max_model_len")
    return length if isinstance(length, int) else None


def _state(item: dict[str, Any]) -> Literal["ready", "unavailable"]:
    return "unavailable" if item.get("state", item.get("status")) == "unavailable" else "ready"
