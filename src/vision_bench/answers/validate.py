"""An answer's text to a result or a typed failure. A failure keeps the raw text."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import jsonschema
from jsonschema.validators import validator_for

from vision_bench.answers.analysis import Json, Question
from vision_bench.wire.chat import Reply

Outcome = Literal["ok", "length", "aborted", "empty", "echo", "invalid_json", "missing_field", "schema_mismatch"]

ECHO = re.compile(r"\s*(?:<\|im_start\|>)?assistant\s*[>:]?[ \t]*(?:\n|(?=\{))", re.IGNORECASE)
"""The role's name ahead of the answer, as in real captures: ``assistant>`` or ``assistant`` and a line end."""

_ENDED_BY_ITSELF = frozenset({"stop", "tool_calls", "function_call", None})
_ALWAYS_EXPECTED = frozenset({"LATIN", "HANGUL"})
_UNITS = frozenset("\u00b5\u03bc\u03a9\u2126")  # µ and Ω are Greek letters by name and units by use


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an answer.

    ``result`` is the parsed object (for free text ``{"text": …}``) or None. ``raw`` is the text as it came, kept
    wherever ``result`` does not say it all. ``warnings`` are names, some with a colon and a detail behind them.
    """

    outcome: Outcome
    result: Json | None
    error: str | None
    raw: str | None
    warnings: tuple[str, ...] = ()


def validate(reply: Reply, question: Question) -> Verdict:
    """Judge an answer against its question.

    In this order: cut by ``max_tokens`` is ``length``; ended by the server for another reason (abort, error,
    content_filter, repetition) is ``aborted``; nothing is ``empty``; then for a schema answer the leading
    role name is ``echo``, unparsable text ``invalid_json``, an absent required field ``missing_field``, and any other
    breach ``schema_mismatch``. Free text with a role name in front is ``ok`` with the warning ``assistant_echo``.
    """
    text = reply.text or ""
    scripts = _script_warnings(text, question.prompt)

    def failure(outcome: Outcome, error: str) -> Verdict:
        return Verdict(outcome, None, error, text, scripts)

    if reply.finish_reason == "length":
        tokens = (reply.usage or {}).get("completion_tokens")
        counted = f" after {tokens} tokens" if tokens is not None else ""
        return failure("length", f"cut by max_tokens{counted}; raise --max-tokens or shorten the schema")
    if reply.finish_reason not in _ENDED_BY_ITSELF:
        return failure("aborted", f"the server ended the answer early (finish_reason {reply.finish_reason}); ask again")
    if not text.strip():
        return failure("empty", f"the answer holds no text (finish_reason {reply.finish_reason})")
    if question.schema is None:
        return _free_text(text, scripts)
    echo = ECHO.match(text)
    if echo:
        return failure("echo", f"the answer starts with the role's name {echo[0].strip()!r}, not with JSON")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as problem:
        return failure("invalid_json", f"not JSON: {problem}")
    breach = _breach(value, question.schema)
    if breach is not None:
        return failure(*breach)
    result = value if isinstance(value, dict) else {"value": value}
    return Verdict("ok", result, None, None, scripts)


def _free_text(text: str, warnings: tuple[str, ...]) -> Verdict:
    echo = ECHO.match(text)
    if echo is None:
        return Verdict("ok", {"text": text}, None, None, warnings)
    return Verdict("ok", {"text": text[echo.end() :]}, None, text, ("assistant_echo", *warnings))


def _breach(value: Any, schema: Json) -> tuple[Outcome, str] | None:
    """How ``value`` breaks ``schema``; absent fields are named together and before anything else."""
    validator = validator_for(schema, default=jsonschema.Draft202012Validator)(schema)
    problems = sorted(validator.iter_errors(value), key=lambda problem: list(map(str, problem.absolute_path)))
    if not problems:
        return None
    missing = [name for problem in problems if problem.validator == "required" for name in _missing_fields(problem)]
    if missing:
        return "missing_field", f"missing: {', '.join(dict.fromkeys(missing))}"
    first = problems[0]
    place = ".".join(map(str, first.absolute_path)) or "the answer"
    return "schema_mismatch", f"{place}: {_short(first.message)}"


def _missing_fields(problem: jsonschema.ValidationError) -> list[str]:
    prefix = ".".join(map(str, problem.absolute_path))
    absent = [name for name in problem.validator_value if name not in problem.instance]
    return [f"{prefix}.{name}" if prefix else name for name in absent]


def _short(message: str, limit: int = 200) -> str:
    return message if len(message) <= limit else f"…{message[-limit:]}"  # the rule stands at the end, the text before


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def scripts_of(text: str) -> dict[str, str]:
    """Scripts of the letters in ``text``, each with the first letter found: ``{"HANGUL": "가", "CJK": "漢"}``.

    A script is the first word of the letter's Unicode name. Digits, punctuation, symbols and marks belong to none.
    Full-width and half-width forms count as what they are.
    """
    found: dict[str, str] = {}
    for letter in dict.fromkeys(text):
        if not letter.isalpha() or letter in _UNITS:
            continue
        plain = unicodedata.normalize("NFKC", letter)[0]
        script = unicodedata.name(plain, "UNKNOWN").split()[0].split("-")[0]
        found.setdefault(script, letter)
    return found


def _script_warnings(text: str, prompt: str) -> tuple[str, ...]:
    """``unexpected_script`` for letters of scripts that a Korean broadcast and the prompt do not use."""
    expected = _ALWAYS_EXPECTED | scripts_of(prompt).keys()
    found = {script: letter for script, letter in scripts_of(text).items() if script not in expected}
    if not found:
        return ()
    listed = ", ".join(f"{script} {letter}" for script, letter in found.items())
    return (f"unexpected_script: {listed}",)
