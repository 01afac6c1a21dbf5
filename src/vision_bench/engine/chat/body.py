"""A request body as fields of the right type, or pydantic's complaint about the first wrong ones, as vLLM words it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from vision_bench.engine.chat.errors import invalid_body, unsupported_content_type

Problem = dict[str, Any]
T = TypeVar("T")


def read_body(data: bytes, content_type: str | None) -> dict[str, Any]:
    """The JSON object in ``data``.

    NaN and Infinity are read (the sampling checks refuse them by name), as Python's parser and vLLM do.

    Raises:
        BadChatRequest: no JSON content type, empty, not JSON, not an object.
    """
    if content_type is None or content_type.split(";")[0].strip().lower() != "application/json":
        raise unsupported_content_type()
    if not data:
        raise invalid_body([{"type": "missing", "loc": "body", "msg": "Field required", "input": "None"}])
    try:
        value: object = msgspec.json.decode(data)  # several times faster than json on 25 MB of base64
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _slow_but_telling(data)
    if not isinstance(value, dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        raise invalid_body([{"type": "model_attributes_type", "loc": "body", "msg": message, "input": shown(value)}])
    return value


def _slow_but_telling(data: bytes) -> object:
    """What json makes of it: NaN read, and otherwise the place of the error."""
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        place, reason = error.pos, error.msg
    except UnicodeDecodeError as error:
        place, reason = error.start, f"'utf-8' codec can't decode byte: {error.reason}"
    except RecursionError:
        place, reason = 0, "maximum recursion depth exceeded"
    problem = {
        "type": "json_invalid",
        "loc": f"body.{place}",
        "msg": "JSON decode error",
        "input": "<dict of 0 items>",
        "ctx": {"error": reason},
    }
    raise invalid_body([problem])


def shown(value: object) -> object:
    """An input as the error text shows it: short strings and numbers whole, containers and long strings by size."""
    if isinstance(value, dict | list):
        return f"<{type(value).__name__} of {len(value)} items>"
    if isinstance(value, str) and len(value) > 100:
        return f"<str of {len(value)} characters>"
    return value


class Fields:
    """The body's fields, read one by one; complaints are gathered so that all can be told at once."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.problems: list[Problem] = []

    def complain(self, kind: str, place: str, message: str, value: object, **context: object) -> None:
        """Note one problem at ``body.<place>``."""
        problem: Problem = {"type": kind, "loc": f"body.{place}", "msg": message, "input": shown(value)}
        if context:
            problem["ctx"] = context
        self.problems.append(problem)

    def refuse_if_any(self) -> None:
        """Raises: BadChatRequest: a complaint was noted."""
        if self.problems:
            raise invalid_body(self.problems)

    def integer(self, name: str) -> int | None:
        """A whole number; a string of digits is read as one, as pydantic does."""
        return self._convert(name, _to_int)

    def number(self, name: str) -> float | None:
        """A number."""
        return self._convert(name, _to_float)

    def flag(self, name: str) -> bool:
        """A boolean; absent is False."""
        return bool(self._convert(name, _to_bool))

    def string(self, name: str) -> str | None:
        """A string."""
        return self._convert(name, _to_str)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object; absent is empty."""
        return self._convert(name, _to_dict) or {}

    def _convert(self, name: str, convert: Callable[[object], T]) -> T | None:
        value = self.body.get(name)
        if value is None:
            return None
        try:
            return convert(value)
        except _Wrong as wrong:
            self.complain(wrong.kind, name, wrong.message, value)
            return None


class _Wrong(Exception):
    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(message)


def _to_int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _Wrong("int_type", "Input should be a valid integer")
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            message = "Input should be a valid integer, unable to parse string as an integer"
            raise _Wrong("int_parsing", message) from None
    if isinstance(value, float) and not value.is_integer():
        raise _Wrong("int_from_float", "Input should be a valid integer, got a number with a fractional part")
    return int(value)


def _to_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _Wrong("float_type", "Input should be a valid number")
    try:
        return float(value)
    except ValueError:
        message = "Input should be a valid number, unable to parse string as a number"
        raise _Wrong("float_parsing", message) from None


def _to_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False, "on": True, "off": False}
    found = words.get(str(value).lower()) if isinstance(value, int | str) else None
    if found is None:
        raise _Wrong("bool_parsing", "Input should be a valid boolean, unable to interpret input")
    return found


def _to_str(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong("string_type", "Input should be a valid string")
    return value


def _to_dict(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong("dict_type", "Input should be a valid dictionary")
    return value
