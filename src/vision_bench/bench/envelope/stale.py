"""Whether a study still speaks of the workload file that it was made from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vision_bench.bench.chat.workload import prepare
from vision_bench.bench.choice import model_facts, prints_of
from vision_bench.bench.envelope.points import Point
from vision_bench.bench.workload import read_workload
from vision_bench.errors import VisionBenchError

Json = dict[str, Any]


def path_from(out: Path, workload: Path) -> str:
    """How a study's folder names its workload file: the two may be moved together."""
    return os.path.relpath(workload.resolve(), out.resolve())


def changes(workload: Path, point: Point, kept: Mapping[str, Any], *, made_dir: Path) -> list[str] | None:
    """What of ``workload`` and ``prompt`` is no longer as in the study; None where the file cannot be read any more.

    Args:
        point: one that the study ran: the file alone may lack what the axes gave it.
        kept: the study's fingerprints.
    """
    try:
        file = read_workload(workload).changed(point.all_changes)
        prepared = prepare(file, can_stream=True, salt="", made_dir=made_dir)
    except VisionBenchError:
        return None
    now = prints_of({"values": msgspec.to_builtins(prepared.workload), "files": prepared.files})
    return [name for name in ("workload", "prompt") if now[name] != kept[name]]


def has_several_models(servers: Sequence[Mapping[str, Any]]) -> bool:
    """Whether runs of one model's name met different models, as far as their servers tell."""
    told = [model_facts(server) for server in servers]
    names = {name for facts in told for name in facts}
    return any(len({facts[name] for facts in told if name in facts}) > 1 for name in names)
