"""The table of kinds. A new benchmark is one folder and one row here; driver, run folder and verbs stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vision_bench.bench.kind import Kind
from vision_bench.errors import InvalidRequest, UnknownName

KINDS = ("chat", "preprocess", "realtime")


def kind_named(name: str) -> Kind:
    """The row of a kind. Its modules are imported when it is asked for: no kind pays for another's libraries.

    Raises:
        UnknownName: there is none.
    """
    match name:
        case "chat":
            from vision_bench.bench.chat.kind import KIND as CHAT  # noqa: PLC0415

            return CHAT
        case "realtime":
            from vision_bench.bench.realtime.kind import KIND as REALTIME  # noqa: PLC0415

            return REALTIME
        case "preprocess":
            from vision_bench.bench.preprocess.kind import KIND as PREPROCESS  # noqa: PLC0415

            return PREPROCESS
    raise UnknownName(f"no benchmark of kind {name!r}; known are {', '.join(KINDS)}")


def own_options(name: str, kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given (not None), all of them this kind's.

    Raises:
        InvalidRequest: one belongs to another kind.
    """
    found = {option: value for option, value in given.items() if value is not None}
    for option in found:
        if option not in kind.options:
            flag = "--" + option.replace("_", "-")
            raise InvalidRequest(f"{flag} means nothing to a workload of kind {name!r}; leave it out")
    return found
