"""What others send, read by its shape: JSON of bounded depth, and fields that are of their kind or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

MAX_DEPTH = 64
"""Of arrays and objects within each other. What is parsed here may be walked, copied and written by plain recursion."""

TOKEN_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def parse_json(
    text: str | bytes, *, max_depth: int = MAX_DEPTH, parse_constant: Callable[[str], Any] | None = None
) -> Any:
    """The value that ``text`` holds. Python's parser also takes the NaN and Infinity that some servers send.

    Raises:
        ValueError: not JSON, or nested deeper than ``max_depth``.
    """
    too_deep = f"nested deeper than {max_depth} levels"
    try:
        value = json.loads(text, parse_constant=parse_constant)
    except RecursionError as problem:
        raise ValueError(too_deep) from problem
    if _openings(text) <= max_depth:  # however they are nested
        return value
    level = [value]
    for _ in range(max_depth + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return value
    raise ValueError(too_deep)


def _openings(text: str | bytes) -> int:
    """Braces and brackets that open, those inside strings included: more than the depth, or as many."""
    return text.count("{") + text.count("[") if isinstance(text, str) else text.count(b"{") + text.count(b"[")


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def object_in(parent: Json, name: str) -> Json:
    """The object at ``name``; empty where there is none. Raises ValueError for anything else."""
    value = parent.get(name)
    if not isinstance(value, dict | None):
        raise ValueError(f"'{name}' is {type(value).__name__}, not an object")
    return value or {}


def objects_in(parent: Json, name: str) -> list[Json]:
    """The array of objects at ``name``; empty where there is none. Raises ValueError for anything else."""
    value = parent.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"'{name}' is {type(value).__name__}, not an array of objects")
    return value


def text_in(parent: Json, name: str) -> str | None:
    """The text at ``name``; None where there is none. Raises ValueError for anything else."""
    value = parent.get(name)
    if not isinstance(value, str | None):
        raise ValueError(f"'{name}' is {type(value).__name__}, not text")
    return value


def content_in(parent: Json, name: str) -> str | None:
    """As `text_in`; an array of content parts is the text of its text parts, joined."""
    if not isinstance(parent.get(name), list):
        return text_in(parent, name)
    return "".join(text_in(part, "text") or "" for part in objects_in(parent, name))


def usage_in(parent: Json) -> Json | None:
    """The usage object, without counts that are none; None where there is no such object: an answer is good without."""
    usage = parent.get("usage")
    if not isinstance(usage, dict):
        return None
    return {name: value for name, value in usage.items() if name not in TOKEN_COUNTS or is_count(value)}


def is_count(value: object) -> bool:
    """Whether ``value`` is a whole number that may be counted with (JSON's numbers know no bound)."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**15)


def label_in(parent: Json, name: str) -> str | None:
    """A name the server gives, such as its model's; None where it is no text."""
    value = parent.get(name)
    return value if isinstance(value, str) else None


def shown(value: object) -> str:
    """Any value as text, whatever it is."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return f"({type(value).__name__} nested too deeply to show)"
    except (TypeError, ValueError):
        return str(value)
