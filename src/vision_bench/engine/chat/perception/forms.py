"""An observation in the form asked for: JSON to a schema, one of several choices, a pattern, or plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import referencing
import referencing.exceptions
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest
from vision_bench.engine.chat.perception.observation import Observation, measurements
from vision_bench.engine.chat.perception.wording import FIELDS, INTRODUCTION, Language, describe, plain_text
from vision_bench.engine.chat.regex_sample import UnsupportedPattern, sample_of
from vision_bench.engine.chat.schema_fill import fill

ALIASES = {"description": "summary", "answer": "summary", "caption": "summary", "text": "on_screen_text"}
"""Other names for the four fields in a user's own schema."""


def answer(seen: Observation, request: ChatRequest, language: Language) -> str:
    """The answer's text.

    Raises:
        BadChatRequest: a schema or pattern that nothing could be written for.
    """
    fields = describe(seen, language)
    if request.choices:
        return choose(request.choices, fields)
    if request.regex is not None:
        return match_pattern(request.regex, fields, seen)
    if request.schema is not None:
        return _json(fit_schema(request.schema, fields, seen))
    if request.json_object:
        return _json(fields)
    return plain_text(fields, language)


def answer_without_media(request: ChatRequest, language: Language) -> str:
    """What this engine is, in the form asked for: it has nothing to measure and no words of its own.

    Raises:
        BadChatRequest: see `answer`.
    """
    introduction = INTRODUCTION[language]
    nothing = Observation(None, None, None, "absent")
    fields = dict.fromkeys(FIELDS, introduction)
    if request.choices:
        return request.choices[0]
    if request.regex is not None:
        return match_pattern(request.regex, fields, nothing)
    if request.schema is not None:
        return _json(fit_schema(request.schema, fields, nothing))
    return _json({"answer": introduction}) if request.json_object else introduction


def choose(choices: tuple[str, ...], fields: Mapping[str, str]) -> str:
    """The first choice that stands in the description; the first of all when none does."""
    said = " ".join(fields[name] for name in FIELDS).casefold()
    return next((choice for choice in choices if choice and choice.casefold() in said), choices[0])


def match_pattern(pattern: str, fields: Mapping[str, str], seen: Observation) -> str:
    """The first field or number that the pattern matches whole, else a text made from the pattern alone.

    Raises:
        BadChatRequest: a pattern that no text could be made from.
    """
    for candidate in (*fields.values(), *map(str, measurements(seen).values())):
        if re.fullmatch(pattern, candidate):
            return candidate
    try:
        return sample_of(pattern) or " "
    except UnsupportedPattern as error:
        raise BadChatRequest(f"Failed to transform regex into a grammar: {error}") from None


def fit_schema(schema: Mapping[str, Any], fields: Mapping[str, str], seen: Observation) -> Any:
    """A value that the schema accepts, measured where a property's name says what is wanted.

    Properties with a name that was measured hold the measurement, if the schema takes it; other strings hold the
    summary; everything else is the first value that the schema allows, and says nothing about the clip.

    Raises:
        BadChatRequest: no such value was found.
    """
    try:
        return _fitted(schema, fields, seen)
    except referencing.exceptions.Unresolvable as error:
        raise BadChatRequest(
            f"Failed to transform json schema into a grammar: {error.ref} is not in the schema, and nothing is fetched"
        ) from None


def _fitted(schema: Mapping[str, Any], fields: Mapping[str, str], seen: Observation) -> Any:
    validator = _validator(schema)
    value = fill(schema, fields["summary"])
    known = _known(fields, seen)
    for holder, name in list(_properties(value)):
        before = holder[name]
        for candidate in _candidates(known.get(ALIASES.get(name, name)), schema, name):
            holder[name] = candidate
            if validator.is_valid(value):
                break
        else:
            holder[name] = before
    problem = next(validator.iter_errors(value), None)
    if problem is not None:
        raise BadChatRequest(
            f"The baseline engine cannot fill this schema: {problem.message[:200]}", param="response_format"
        )
    return value


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BadChatRequest(f"Failed to transform json schema into a grammar: {error.message[:200]}") from None
    # An empty registry: a reference to another document is an error, and never fetched.
    return Draft202012Validator(schema, registry=referencing.Registry())


def _known(fields: Mapping[str, str], seen: Observation) -> dict[str, Any]:
    """Everything that a property may be named after."""
    picture, text, sound = seen.picture, seen.text, seen.sound
    known: dict[str, Any] = {**measurements(seen), **fields}
    if picture is not None:
        known |= {
            "is_black": picture.is_black,
            "is_frozen": bool(picture.frozen_seconds),
            "brightness": round(picture.brightness or 0.0, 1),
            "motion": round(picture.motion or 0.0, 3),
            "duration_seconds": round(picture.duration_seconds, 1),
        }
    if text is not None:
        known |= {"has_text": bool(text.lines or text.unread_places), "texts": list(text.lines)}
    known |= {"has_sound": sound is not None and not sound.is_silent}
    if sound is not None:
        known |= {"has_speech": bool(sound.speech), "is_silent": sound.is_silent}
    return known


def _candidates(known: Any, schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    """The value that is known, and shorter or rounded forms of it."""
    if known is None:
        return
    yield known
    if isinstance(known, float):
        yield round(known)
    if isinstance(known, list):
        yield len(known)
        yield "; ".join(known)
    if isinstance(known, int | float) and not isinstance(known, bool):
        yield str(known)
    if isinstance(known, str):
        own = schema.get("properties", {}).get(name, {})
        limit = own.get("maxLength") if isinstance(own, Mapping) else None
        length = int(limit) if isinstance(limit, int | float) else len(known)
        while length > 0:
            yield shortened(known, length)
            length //= 2


def shortened(text: str, length: int) -> str:
    """At most ``length`` characters. The measured line at the end outlives the words before it while it fits."""
    if len(text) <= length:
        return text
    start = text.rfind("[measured: ")
    if start >= 0 and len(text) - start <= length:
        return text[start:]
    return text[: length - 1].rstrip() + "…" if length > 1 else text[:length]


def _properties(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every object inside a value with each of its names."""
    if isinstance(value, dict):
        for name, inside in value.items():
            yield value, name
            yield from _properties(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _properties(inside)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
