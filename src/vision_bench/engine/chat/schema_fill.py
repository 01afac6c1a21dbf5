"""A value that a JSON schema accepts, filled with a given text where strings are free."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from vision_bench.engine.chat.regex_sample import UnsupportedPattern, sample_of

Schema = Mapping[str, Any]
MAX_DEPTH = 24
"""Levels of nesting before optional parts are left out: recursive schemas end."""

FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
}


def fill(schema: Schema, text: str) -> Any:
    """A value for ``schema``; every property is there, arrays have their fewest items, at least one where allowed.

    Reads type, enum, const, properties, required, items, prefixItems, anyOf, oneOf, allOf, $ref into the same
    document, and the bounds of numbers, strings and arrays. Other keywords are not looked at.
    """
    return _fill(schema, text, schema, 0)


def _fill(schema: Any, text: str, root: Schema, depth: int) -> Any:
    if not isinstance(schema, Mapping):  # true and {} accept anything
        return text
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            # Past the depth the last alternative is taken: recursive schemas put the way out (null) there.
            branch = schema[keyword][0 if depth < MAX_DEPTH else -1]
            rest = {key: value for key, value in schema.items() if key != keyword}
            return _fill(_merged(rest, _resolved(branch, root)), text, root, depth + 1)
    return _by_type(schema, text, root, depth)


def _by_type(schema: Schema, text: str, root: Schema, depth: int) -> Any:
    match _type_of(schema):
        case "object":
            return _object(schema, text, root, depth)
        case "array":
            return _array(schema, text, root, depth)
        case "integer":
            return math.ceil(_number(schema))
        case "number":
            return _number(schema)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return _string(schema, text)


def _type_of(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _resolved(schema: Any, root: Schema) -> dict[str, Any]:
    """``schema`` with its ``$ref`` followed and its ``allOf`` merged."""
    found: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    for _ in range(MAX_DEPTH):
        reference = found.pop("$ref", None)
        if not isinstance(reference, str):
            break
        found = _merged(found, _pointed_at(reference, root))
    for part in found.pop("allOf", []):
        found = _merged(found, _resolved(part, root))
    return found


def _pointed_at(reference: str, root: Schema) -> dict[str, Any]:
    place: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step:
            place = place.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(place, Mapping) else {}
    return dict(place) if isinstance(place, Mapping) else {}


def _merged(first: Schema, second: Schema) -> dict[str, Any]:
    both = dict(first) | dict(second)
    if "properties" in first and "properties" in second:
        both["properties"] = dict(first["properties"]) | dict(second["properties"])
    if "required" in first and "required" in second:
        both["required"] = [*first["required"], *second["required"]]
    return both


def _object(schema: Schema, text: str, root: Schema, depth: int) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = list(dict.fromkeys(schema.get("required") or []))
    names = list(properties) if depth < MAX_DEPTH else [name for name in properties if name in required]
    names += [name for name in required if name not in names]
    return {name: _fill(properties.get(name, {}), text, root, depth + 1) for name in names}


def _array(schema: Schema, text: str, root: Schema, depth: int) -> list[Any]:
    prefix = schema.get("prefixItems") or []
    fewest = int(schema.get("minItems", 0))
    most = schema.get("maxItems")
    wanted = max(fewest, len(prefix), 1 if depth < MAX_DEPTH else 0)
    if most is not None:
        wanted = min(wanted, int(most))
    if schema.get("items") is False:
        wanted = min(wanted, len(prefix))
    values = [_fill(item, text, root, depth + 1) for item in prefix[:wanted]]
    for number in range(len(values), wanted):
        # uniqueItems would refuse the same text twice
        own = f"{text} {number + 1}" if schema.get("uniqueItems") else text
        values.append(_fill(schema.get("items", {}), own, root, depth + 1))
    return values


def _number(schema: Schema) -> int | float:
    """The smallest allowed value at or above 0, else the largest allowed one."""
    low = schema.get("minimum", -math.inf)
    if "exclusiveMinimum" in schema:
        low = max(low, _above(schema["exclusiveMinimum"], schema))
    high = schema.get("maximum", math.inf)
    if "exclusiveMaximum" in schema:
        high = min(high, _below(schema["exclusiveMaximum"], schema))
    value = min(max(0, low), high)
    step = schema.get("multipleOf")
    if step:
        value = math.ceil(value / step) * step
        if value > high:
            value = math.floor(high / step) * step
    return value if isinstance(value, int) or not float(value).is_integer() else int(value)


def _above(bound: float, schema: Schema) -> float:
    return math.floor(bound) + 1 if _type_of(schema) == "integer" else math.nextafter(bound, math.inf)


def _below(bound: float, schema: Schema) -> float:
    return math.ceil(bound) - 1 if _type_of(schema) == "integer" else math.nextafter(bound, -math.inf)


def _string(schema: Schema, text: str) -> str:
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            return sample_of(pattern)
        except UnsupportedPattern:
            return text
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    shortest, longest = int(schema.get("minLength", 0)), schema.get("maxLength")
    while len(text) < shortest:
        text = f"{text} {text}" if text else " "
    if longest is None or len(text) <= longest:
        return text
    cut = text[: int(longest)].rstrip()
    return cut if len(cut) >= shortest else text[: int(longest)]
