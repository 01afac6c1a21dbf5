"""What form the answer must have: ``response_format`` and ``structured_outputs``, read and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vision_bench.engine.chat.body import Fields
from vision_bench.engine.chat.model import BadChatRequest

JSON_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The constraint on the answer; nothing set is free text."""

    schema: dict[str, Any] | None = None
    json_object: bool = False
    choices: tuple[str, ...] = ()
    regex: str | None = None
    is_schema_missing: bool = False

    def check(self) -> None:
        """Refuse what a grammar cannot be made of.

        Raises:
            BadChatRequest: as vLLM words it.
        """
        if self.is_schema_missing:
            raise BadChatRequest(
                "When response_format type is 'json_schema', the 'json_schema' field must be provided. "
                "(parameter=response_format)",
                param="response_format",
            )
        if self.schema is not None:
            bad = unsupported_type(self.schema)
            if bad is not None:
                raise BadChatRequest(f"Grammar error: Invalid type: {bad}")
        if self.regex is not None:
            try:
                re.compile(self.regex)
            except re.error as error:
                raise BadChatRequest(f"Grammar error: {error}") from None


def read_answer_form(fields: Fields) -> AnswerForm:
    """The form that the body asks for; a wrong ``response_format.type`` is noted in ``fields``."""
    outputs = fields.mapping("structured_outputs")
    wanted = fields.mapping("response_format")
    kind = wanted.get("type", "text" if not wanted else None)
    if outputs:
        return _from_structured_outputs(outputs)
    if kind == "json_schema":
        holder = wanted.get("json_schema")
        schema = holder.get("schema") if isinstance(holder, dict) else None
        return AnswerForm(schema=schema if isinstance(schema, dict) else None, is_schema_missing=holder is None)
    if kind not in ("text", "json_object"):
        _complain_about_type(fields, wanted, kind)
    return AnswerForm(json_object=kind == "json_object")


def _from_structured_outputs(outputs: dict[str, Any]) -> AnswerForm:
    schema, choice, regex = outputs.get("json"), outputs.get("choice"), outputs.get("regex")
    return AnswerForm(
        schema=schema if isinstance(schema, dict) else None,
        json_object=bool(outputs.get("json_object")),
        choices=tuple(str(option) for option in choice) if isinstance(choice, list) else (),
        regex=regex if isinstance(regex, str) else None,
    )


def _complain_about_type(fields: Fields, wanted: dict[str, Any], kind: object) -> None:
    """The three variants that vLLM's union tries, and the fields that each lacks."""
    variants = (
        ("'text', 'json_object' or 'json_schema'", ()),
        ("'structural_tag'", ("format",)),
        ("'structural_tag'", ("structures", "triggers")),
    )
    for expected, lacking in variants:
        message = f"Input should be {expected}"
        fields.complain("literal_error", "response_format.type", message, kind, expected=expected)
        for name in lacking:
            fields.complain("missing", f"response_format.{name}", "Field required", wanted)


def unsupported_type(schema: object) -> str | None:
    """The first ``type`` anywhere in a schema that JSON does not have; None when all are known."""
    if isinstance(schema, list):
        return next((bad for item in schema if (bad := unsupported_type(item)) is not None), None)
    if not isinstance(schema, dict):
        return None
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in JSON_TYPES:
            return kind
    for keyword, inside in schema.items():
        if keyword in ("properties", "$defs", "definitions", "patternProperties") and isinstance(inside, dict):
            found = unsupported_type(list(inside.values()))
        elif keyword in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties", "not"):
            found = unsupported_type(inside)
        else:
            found = None
        if found is not None:
            return found
    return None
