"""The envelope that was chosen for a workload, in a small file beside it, and whether it still holds.

``vision-bench envelope`` writes it. A run whose workload, prompt or served model is no longer what the choice rests on
calls it STALE: what was accurate enough then has not been shown to be so now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vision_bench.bench.rundir import write_json
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]

SCHEMA = 1
ENDING = ".envelope.json"

AXES = ("height", "fps", "num_frames", "seconds", "max_pixels", "use_audio")
"""Keys of a workload that say how much of its media the model gets."""

_PROMPT = ("prompt", "system", "schema")
_ASIDE = (*AXES, *_PROMPT, "model", "control", "region", "expected_rate", "expected_concurrency", "timeout_seconds")
_MODEL_FACTS = ("root_sha256", "max_model_len")


def choice_path(workload: Path) -> Path:
    """Where the choice for a workload file lies."""
    return workload.with_name(workload.stem + ENDING)


def prints_of(facts: Mapping[str, Any]) -> Json:
    """Fingerprints of a workload without its envelope, and of its prompt, from what a manifest keeps of it."""
    values, files = facts["values"], facts["files"]
    schema = None if values["schema"] is None else Path(values["schema"]).name
    prompt = [[values[key] for key in _PROMPT if key != "schema"], files.get(schema)]
    rest = {key: value for key, value in values.items() if key not in _ASIDE}
    others = {name: sha256 for name, sha256 in files.items() if name != schema}
    return {"workload": _hash([rest, others]), "prompt": _hash(prompt)}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def model_facts(server: Mapping[str, Any]) -> Json:
    """What the server told of the model that it serves; only what it told."""
    card = server.get("model") or {}
    return {name: card[name] for name in _MODEL_FACTS if card.get(name) is not None}


def make_choice(
    study: Mapping[str, Any], chosen: Sequence[Mapping[str, Any]], prints: Mapping[str, Any], models: Mapping[str, Any]
) -> Json:
    """The file's content.

    Args:
        study: ``workload``, ``threshold``, ``made_at``.
        chosen: for each model the row that was chosen, shortened; a model that none was good enough for has none.
        models: ``model_facts`` of each model that was studied.
    """
    return {
        "schema": SCHEMA,
        **study,
        "chosen": list(chosen),
        "fingerprints": dict(prints),
        "models": dict(models),
    }


def write_choice(path: Path, choice: Json) -> None:
    """Put it in place whole.

    Raises:
        OperatorError: it cannot be written there.
    """
    write_json(path, choice)


def read_choice(path: Path) -> Json | None:
    """A choice that was kept; None where there is none.

    Raises:
        InvalidRequest: a file that is none.
    """
    if not path.is_file():
        return None
    try:
        choice = json.loads(path.read_bytes())
        if choice["schema"] != SCHEMA or not isinstance(choice["chosen"], list):
            raise ValueError(f"it is of schema {choice['schema']}")
        choice["fingerprints"]["workload"], choice["fingerprints"]["prompt"], choice["models"].keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InvalidRequest(
            f"{path} is no choice of an envelope ({problem}); delete it, or run `vision-bench envelope` again"
        ) from problem
    return choice  # type: ignore[no-any-return]


def standing(choice: Mapping[str, Any], facts: Mapping[str, Any], server: Mapping[str, Any]) -> Json:
    """How a workload that is about to run stands to its choice.

    Args:
        facts: what the manifest keeps of the workload.
        server: what the server told of itself.

    Returns:
        ``stale``: what has changed since (``workload``, ``prompt``, ``served model``), empty when nothing has;
        ``is_used``: the workload's envelope is the chosen one; ``chosen``: that of its model, None where none was.
    """
    values = facts["values"]
    model = values["model"]
    prints = prints_of(facts)
    stale = [name for name in ("workload", "prompt") if prints[name] != choice["fingerprints"][name]]
    then, now = choice["models"].get(model), model_facts(server)
    # A gateway tells less of a model than its server: only what both tell can be compared.
    if then is None or any(then[name] != now[name] for name in then.keys() & now.keys()):
        stale.append("served model")
    chosen = next((row for row in choice["chosen"] if row["model"] == model), None)
    is_used = chosen is not None and all(
        (values.get(key) or None) == (chosen["envelope"].get(key) or None) for key in AXES
    )
    shown = {key: choice.get(key) for key in ("threshold", "made_at")}
    return {**shown, "stale": stale, "is_used": is_used and values.get("control") is None, "chosen": chosen}


def in_words(standing: Mapping[str, Any]) -> str:
    """One line for a person."""
    chosen = standing["chosen"]
    what = "no envelope was good enough for this model" if chosen is None else f"chosen: {chosen['words']}"
    used = "" if chosen is None else ", which this workload uses" if standing["is_used"] else ", not this workload's"
    if standing["stale"]:
        changed = " and ".join(standing["stale"])
        return f"Envelope STALE ({changed} changed since {standing['made_at']}): {what}{used}; run the study again"
    return f"Envelope {what}{used} (threshold {standing['threshold']:g}, {standing['made_at']})"
