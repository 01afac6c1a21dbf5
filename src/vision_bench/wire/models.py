"""A ``/v1/models`` answer: as (id, state), and as a gateway shows it (vLLM's ``root`` is a path on its disk)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

_SHOWN = ("id", "object", "created", "owned_by", "max_model_len")
"""What clients read of a model. Nothing else is shown: a server may put anything there, paths among it."""


@dataclass(frozen=True, slots=True)
class Model:
    """One served model. What the server does not say is None.

    Attributes:
        max_model_len: in tokens.
        root_sha256: sixteen hex digits for what was loaded under the name, where that is another than the name: a path
            on the server's disk, which is not kept.
    """

    id: str
    state: Literal["ready", "unavailable"] = "ready"
    max_model_len: int | None = None
    root_sha256: str | None = None


def read_models(body: object) -> list[Model]:
    """Models of an OpenAI-shaped list, in the server's order. vLLM lists a model only when it can answer.

    Raises:
        ValueError: not such a list.
    """
    return [
        Model(card["id"], state=_state(card), max_model_len=_length(card), root_sha256=_root(card))
        for card in _cards(body)
    ]


def shown_models(bodies: Sequence[object]) -> dict[str, Any]:
    """The lists of several servers as one that may be shown to anybody: each id once, as the first server has it.

    ``root`` is the id, for vLLM's is a path or the base model of an adapter; ``parent`` stays where it is the id of
    a model in the list.

    Raises:
        ValueError: one of them is no model list.
    """
    cards: dict[str, dict[str, Any]] = {}
    for body in bodies:
        for card in _cards(body):
            cards.setdefault(card["id"], card)
    return {"object": "list", "data": [_shown(card, cards) for card in cards.values()]}


def _cards(body: object) -> list[dict[str, Any]]:
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        raise ValueError("the model list has no 'data' array")
    return [card for card in data if isinstance(card, dict) and isinstance(card.get("id"), str)]


def _shown(card: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    shown = {name: card[name] for name in _SHOWN if isinstance(card.get(name), str | int)}
    parent = card.get("parent")
    return shown | {"root": card["id"], "parent": parent if isinstance(parent, str) and parent in known else None}


def _length(item: dict[str, Any]) -> int | None:
    length = item.get("max_model_len")
    return length if isinstance(length, int) else None


def _root(item: dict[str, Any]) -> str | None:
    root = item.get("root")
    if not isinstance(root, str) or root == item["id"]:
        return None
    return hashlib.sha256(root.encode(errors="surrogatepass")).hexdigest()[:16]


def _state(item: dict[str, Any]) -> Literal["ready", "unavailable"]:
    return "unavailable" if item.get("state", item.get("status")) == "unavailable" else "ready"
