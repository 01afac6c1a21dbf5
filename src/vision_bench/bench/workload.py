"""The part that every workload file shares: how it is read, what it must say, and its fingerprint."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from vision_bench.errors import InvalidRequest
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]


class Common(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of every workload. A kind's own struct adds the rest.

    Attributes:
        region: where the client runs, as its owner calls it; a label of every result.
        expected_rate: requests a second that production brings; the report says whether a run reached it.
        expected_concurrency: the same, as requests at once.
        timeout_seconds: a request that takes longer has failed.
    """

    name: str
    kind: str
    region: str | None = None
    expected_rate: float | None = None
    expected_concurrency: int | None = None
    timeout_seconds: float = 300.0

    def __post_init__(self) -> None:
        require(bool(self.name.strip()), "name is empty; give the workload one")
        require(self.timeout_seconds > 0, f"timeout_seconds is {self.timeout_seconds:g}; give seconds above 0")
        require(self.expected_rate is None or self.expected_rate > 0, "expected_rate must be above 0")
        require(
            self.expected_concurrency is None or self.expected_concurrency > 0, "expected_concurrency must be 1 or more"
        )


W = TypeVar("W", bound=Common)


@dataclass(frozen=True, slots=True)
class WorkloadFile:
    """A workload file as it was read. Paths in it are relative to its folder."""

    path: Path
    values: Json

    def changed(self, changes: Mapping[str, Any]) -> WorkloadFile:
        """The same file with other values; None takes a key out."""
        kept = {key: value for key, value in self.values.items() if key not in changes}
        return replace(self, values=kept | {key: value for key, value in changes.items() if value is not None})

    @property
    def kind(self) -> str:
        """Which benchmark it is for."""
        return str(self.values["kind"])

    def checked(self, as_kind: type[W]) -> W:
        """Its values as a kind's struct.

        Raises:
            InvalidRequest: an unknown key, a value of the wrong type, or one that the kind refuses; the message names
                file, key and remedy.
        """
        known = [field.name for field in msgspec.structs.fields(as_kind)]
        for key in self.values:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                raise InvalidRequest(f"{self.path}: unknown key {key!r}; {hint}")
        try:
            return msgspec.convert(self.values, as_kind)
        except msgspec.ValidationError as problem:
            raise InvalidRequest(f"{self.path}: {_in_words(str(problem))}") from problem

    def resolve(self, name: str) -> Path:
        """A path that the file names."""
        return self.path.parent / Path(name).expanduser()


def require(is_met: bool, message: str) -> None:
    """Refuse a value inside a struct's ``__post_init__``. msgspec turns ValueError into its own error."""
    if not is_met:
        raise ValueError(message)


def read_workload(path: Path) -> WorkloadFile:
    """Read a workload file: TOML, or the JSON of the published benchmark of generated video, which names no kind.

    Raises:
        InvalidRequest: not there, not TOML or JSON, or without a kind.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"{path} cannot be read ({problem}); give a workload file in TOML") from problem
    if path.suffix == ".json":
        return WorkloadFile(path, {"name": path.stem, "kind": "realtime", **_object(path, text)})
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InvalidRequest(f"{path} is not TOML: {problem}") from problem
    if not isinstance(values.get("kind"), str):
        raise InvalidRequest(f'{path} does not say its kind; add a line such as kind = "chat"')
    return WorkloadFile(path, values)


def _object(path: Path, text: str) -> Json:
    try:
        document = parse_json(text)
    except ValueError as problem:
        raise InvalidRequest(f"{path} is not JSON: {problem}") from problem
    if not isinstance(document, dict):
        raise InvalidRequest(f"{path} holds {type(document).__name__}; it must be one JSON object")
    return document


def media_path(path: Path) -> Path | None:
    """Where the media of a workload file lie; None of one that names none.

    Raises:
        InvalidRequest: it is no workload file.
    """
    file = read_workload(path)
    clips = file.values.get("clips")
    return file.resolve(clips) if isinstance(clips, str) else None


def fingerprint(workload: Common, files: Mapping[str, str]) -> str:
    """Sixteen hex digits that change with anything that changes what is sent.

    Args:
        files: name to hash of every file that the workload names. Where they lie, comments and layout do not matter.
    """
    content = json.dumps([msgspec.to_builtins(workload), dict(files)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _in_words(problem: str) -> str:
    """``Expected `int`, got `str` - at `$.max_tokens` `` as ``max_tokens: expected int, got str``."""
    message, _, place = problem.partition(" - at ")
    key = re.sub(r"^`\$\.?|`$", "", place)
    plain = message.replace("`", "")
    return f"{key}: {plain[:1].lower()}{plain[1:]}" if key else plain
