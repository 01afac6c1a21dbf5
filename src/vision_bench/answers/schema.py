"""A user's JSON schema: checked whole when it is read, and held against answers without looking outside it."""

from __future__ import annotations

from typing import Any

import jsonschema
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, UnknownDialect, specification_with

Json = dict[str, Any]

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SAMPLES: tuple[Any, ...] = (None, True, 0, "", [], {})


def validator(schema: Json) -> Any:
    """jsonschema's validator for the draft that ``schema`` names.

    Its registry is empty: a reference out of the schema is an error, never a file or an address to fetch.
    """
    return validator_for(schema, default=jsonschema.Draft202012Validator)(schema, registry=Registry())


def check(schema: Json) -> None:
    """Refuse a schema that no answer could be held to.

    Raises:
        ValueError: not a JSON schema, or a reference that leads nowhere or back to itself; the message says which.
    """
    if not isinstance(schema.get("$schema", ""), str):
        raise ValueError("its $schema is not text")
    try:
        validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError as problem:
        raise ValueError(problem.message) from problem
    _check_references(schema)
    try:
        for sample in _SAMPLES:
            list(validator(schema).iter_errors(sample))
    except RecursionError as problem:
        raise ValueError("it refers to itself without end") from problem


def _check_references(schema: Json) -> None:
    """Follow every reference of ``schema``. Raises ValueError at the first that leads nowhere."""
    try:
        specification = specification_with(schema.get("$schema", ""))
    except UnknownDialect:
        specification = DRAFT202012
    root: Resource[Any] = specification.create_resource(schema)
    # `in_subresource` moves on to a part that has an $id of its own; looked-up parts come with their own resolver.
    waiting = [(root, Registry().resolver_with_root(root))]
    seen: set[int] = set()
    while waiting:
        part, resolver = waiting.pop()
        if not isinstance(part.contents, dict) or id(part.contents) in seen:
            continue
        seen.add(id(part.contents))
        waiting += [(inner, resolver.in_subresource(inner)) for inner in part.subresources()]
        for reference in (part.contents[name] for name in _REFERENCES if name in part.contents):
            try:
                found = resolver.lookup(reference)
            except Unresolvable as problem:
                raise ValueError(
                    f"its reference {reference!r} leads nowhere in the file, and nothing is fetched from elsewhere; "
                    "copy what it means under $defs and refer to it as #/$defs/NAME"
                ) from problem
            waiting.append((specification.create_resource(found.contents), found.resolver))
