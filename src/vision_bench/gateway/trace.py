"""A caller's trace context (W3C Trace Context, levels 1 and 2): whether it is one, and what goes on to vLLM.

It goes on as it came, unless the gateway makes spans: then the parent that vLLM is told is one of them (``spans``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PARENT = re.compile(
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?P<trace_id>(?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    r"(?P<more>-[\x20-\x7e]*)?"
)
_MEMBER = re.compile(
    r"(?P<key>[a-z0-9][a-z0-9_\-*/@]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MOST_MEMBERS = 32


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of a request.

    Attributes:
        trace_id: 32 hex digits.
        headers: what to send on.
    """

    trace_id: str
    headers: dict[str, str]


def trace_of(headers: Iterable[tuple[bytes, bytes]]) -> Trace | None:
    """The trace that a request's headers (names in lower case) name; None: none, or none that is valid.

    A tracestate that is not valid is left out alone, as the standard has it.
    """
    parents = [value for name, value in headers if name == b"traceparent"]
    if len(parents) != 1:
        return None
    parent = parents[0].decode("latin-1")
    found = _PARENT.fullmatch(parent)
    if found is None or (found["version"] == "00" and found["more"]):
        return None
    sent = {"traceparent": parent}
    state = ",".join(value.decode("latin-1") for name, value in headers if name == b"tracestate")
    if state and _is_state(state):
        sent["tracestate"] = state
    return Trace(found["trace_id"], sent)


def _is_state(state: str) -> bool:
    members = [member for part in state.split(",") if (member := part.strip(" \t"))]
    found = [_MEMBER.fullmatch(member) for member in members]
    keys = {match["key"] for match in found if match}
    return 0 < len(members) == len(keys) <= _MOST_MEMBERS
