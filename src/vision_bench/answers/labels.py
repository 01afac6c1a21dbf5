"""What is known of each item that a workload sends: facts, read from a broadcast's labels or from a user's JSONL.

docs/workloads.md describes the file.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any, get_args

from vision_bench.answers.facts import Fact, Sense
from vision_bench.answers.scorers import check_label, default_limit, is_error_rate
from vision_bench.errors import InvalidRequest
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]

EVERY_ITEM = "*"
MAX_FILE_BYTES = 64 * 1024 * 1024
_KEYS = ("item", "fact", "scorer", "value", "field", "accept", "tolerance", "at_least", "at_most", "sense")
_SENSES: Mapping[str, Sense] = {"audio": "sound", "video": "picture"}


FactsByItem = Mapping[str, Sequence[Fact]]


@dataclass(frozen=True, slots=True)
class Labels:
    """A label file. ``sha256`` is of its bytes; ``facts`` has the selected ones by item, ``*`` being every item."""

    name: str
    sha256: str
    facts: FactsByItem

    def of_items(self, items: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
        """The facts of each item that has some.

        Args:
            items: file names as they are sent; a label may name them with or without their ending.

        Raises:
            InvalidRequest: no item has a label, or two items cannot be told apart by their names.
        """
        twice = [name for name, count in Counter(map(_stem, items)).items() if count > 1]
        if twice:
            raise InvalidRequest(f"two clips are called {twice[0]}: labels cannot tell them apart; rename one")
        shared = tuple(self.facts.get(EVERY_ITEM, ()))
        found = {item: (*self.facts.get(_stem(item), ()), *shared) for item in items}
        labelled = {item: facts for item, facts in found.items() if facts}
        if not labelled:
            known = ", ".join(list(self.facts)[:3]) or "none"
            raise InvalidRequest(
                f"{self.name} labels none of the {len(items)} items that are sent: it knows {known}, they are called "
                f"{', '.join(items[:3])}; a label's item is the clip's file name"
            )
        return labelled


def read_labels(path: Path, *, select: Sequence[str] | None = None) -> Labels:
    """A label file: ``vision-bench broadcast``'s JSON, or JSONL with a fact a line.

    Args:
        select: names of facts to keep, with ``*`` for any letters; one that begins with ``!`` leaves out. Facts of a
            broadcast are ``measured.NAME`` for an engine that measures and ``said.NAME`` for a model that reads and
            hears; one must say which.

    Raises:
        InvalidRequest: not there, not such a file, an unknown scorer, a value that its scorer cannot use, or a
            selection that leaves nothing.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as problem:
        raise InvalidRequest(f"labels {path} cannot be read: {problem.strerror or problem}") from problem
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(f"labels {path} hold more than {MAX_FILE_BYTES} bytes; split them")
    broadcast = _as_broadcast(data)
    if broadcast is not None:
        if select is None:
            raise InvalidRequest(
                f'{path.name} is a broadcast\'s: say which of its facts are asked, facts = ["measured.*"] of an engine '
                'that measures, facts = ["said.*"] of a model that reads and hears'
            )
        facts = _broadcast_facts(broadcast)
    else:
        facts = _line_facts(path.name, data)
    return Labels(path.name, hashlib.sha256(data).hexdigest(), _selected(path.name, facts, select))


def _stem(item: str) -> str:
    return PurePath(item).stem


def _selected(name: str, facts: FactsByItem, select: Sequence[str] | None) -> FactsByItem:
    if select is None:
        return facts
    wanted = [pattern for pattern in select if not pattern.startswith("!")] or ["*"]
    unwanted = [pattern.removeprefix("!") for pattern in select if pattern.startswith("!")]

    def is_asked(fact: Fact) -> bool:
        return _fits(fact.name, wanted) and not _fits(fact.name, unwanted)

    known = sorted({fact.name for one in facts.values() for fact in one})
    for pattern in (*wanted, *unwanted):
        if not any(fnmatchcase(fact, pattern) for fact in known):
            raise InvalidRequest(f"facts: no fact of {name} is called {pattern!r}; it has {', '.join(known) or 'none'}")
    kept = {item: tuple(fact for fact in one if is_asked(fact)) for item, one in facts.items()}
    if not any(kept.values()):
        raise InvalidRequest(f"facts = {list(select)} leave nothing of {name}")
    return kept


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# --- a user's lines


def _line_facts(name: str, data: bytes) -> dict[str, list[Fact]]:
    facts: dict[str, list[Fact]] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            item, fact = _line_fact(parse_json(line))
        except ValueError as problem:
            raise InvalidRequest(f"{name} line {number}: {problem}") from problem
        of_item = facts.setdefault(item, [])
        if any(other.name == fact.name for other in of_item):
            raise InvalidRequest(f"{name} line {number}: {item} has a fact {fact.name!r} already; name it otherwise")
        of_item.append(fact)
    if not facts:
        raise InvalidRequest(f"{name} holds no label; write a JSON object a line (docs/workloads.md)")
    return facts


def _line_fact(line: Any) -> tuple[str, Fact]:
    """Item and fact of one line. Raises ValueError with the key and the remedy."""
    if not isinstance(line, dict):
        raise ValueError("a label is a JSON object with item, fact, scorer and value")
    for key in line:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            raise ValueError(f"unknown key {key!r}; " + (f"did you mean {near[0]!r}?" if near else f"known: {_KEYS}"))
    for key in ("item", "fact", "scorer", "value"):
        if key not in line:
            raise ValueError(f"{key} is missing; a label has item, fact, scorer and value")
    sense, field = line.get("sense"), line.get("field")
    texts: Callable[[Any], bool] = lambda value: isinstance(value, str) and bool(value.strip())  # noqa: E731
    if not texts(line["item"]) or not texts(line["fact"]) or not (field is None or texts(field)):
        raise ValueError("item, fact and field are texts that are not empty")
    if sense is not None and sense not in get_args(Sense):
        raise ValueError(f"sense is {sense!r}; it is picture or sound")
    accept = line.get("accept", [])
    if not isinstance(accept, list) or not all(map(texts, accept)):
        raise ValueError("accept is a list of wordings")
    check_label(line["scorer"], line["value"])
    fact = Fact(
        name=line["fact"],
        scorer=line["scorer"],
        value=line["value"],
        field=field,
        accept=tuple(accept),
        tolerance=_number(line, "tolerance", 0.0),
        limit=_limit(line),
        sense=sense,
    )
    return _stem(line["item"]) if line["item"] != EVERY_ITEM else EVERY_ITEM, fact


def _limit(line: Json) -> float:
    scorer = line["scorer"]
    default = default_limit(scorer)
    key, other = ("at_most", "at_least") if is_error_rate(scorer) else ("at_least", "at_most")
    if other in line:
        raise ValueError(f"{scorer} is right from a value on that is said with {key}, not {other}")
    return _number(line, key, default)


def _number(line: Json, key: str, default: float) -> float:
    value = line.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError(f"{key} is {value!r}; give a number of 0 or more")
    return float(value)


# --- a broadcast


def _as_broadcast(data: bytes) -> Json | None:
    """The content of a broadcast's label file; None for anything else, lines among it."""
    if not data.lstrip().startswith(b"{"):
        return None
    try:
        content = parse_json(data)
    except ValueError:
        return None
    return content if isinstance(content, dict) and isinstance(content.get("windows"), list) else None


def _broadcast_facts(labels: Json) -> dict[str, list[Fact]]:
    return {window["clip"]: [*_measured(window), *_said(window)] for window in labels["windows"]}


def _measured(window: Json) -> list[Fact]:
    return [
        Fact(
            f"measured.{name}",
            "measured",
            {"name": name, **truth},
            limit=default_limit("f1") if isinstance(truth["value"], list) else 1.0,
            sense=_SENSES[sense],
        )
        for sense in ("audio", "video")
        for name, truth in window["measurable"][sense].items()
    ]


def _said(window: Json) -> list[Fact]:
    facts = [
        Fact(f"said.{fact['fact']}", "contains", fact["value"], accept=tuple(fact["accept"]), sense=_SENSES[sense])
        for sense, key in (("audio", "audio_only"), ("video", "video_only"))
        for fact in _first_of_each(window[key])
    ]
    sentences = " ".join(line["text"] for line in window["speech"] if line["heard"] == "full")
    if sentences:
        facts += [
            Fact(f"said.speech_{rate}", rate, sentences, field="speech", limit=default_limit(rate), sense="sound")
            for rate in ("cer", "wer")
        ]
    return facts


def _first_of_each(facts: Sequence[Json]) -> list[Json]:
    """A window may have two facts of one name (two teams); the second and further ones get numbers."""
    seen: Counter[str] = Counter()
    named = []
    for fact in facts:
        seen[fact["fact"]] += 1
        number = seen[fact["fact"]]
        named.append(fact if number == 1 else fact | {"fact": f"{fact['fact']}_{number}"})
    return named
