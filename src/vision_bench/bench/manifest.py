"""The manifest of a run: what was asked for, of what, on which machine. A resumed run must have the same."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vision_bench.bench.environment import describe
from vision_bench.bench.kind import Loaded
from vision_bench.bench.rundir import read_manifest
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]

SCHEMA = 1


def make_manifest(kind: str, loaded: Loaded, *, load: Mapping[str, Any], plan: Any) -> Json:
    """The manifest of a run that begins now.

    Args:
        load: the load as it was asked for.
        plan: what comes of it, every step with the hash of its schedule; what it equals is the same run.
    """
    return {
        "schema": SCHEMA,
        "kind": kind,
        "run_id": f"vb-{secrets.token_hex(4)}",
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "workload": loaded.facts,
        "labels": loaded.labels,
        "load": dict(load),
        "plan": plan,
        "environment": describe(),
    }


def same_run(path: Path, manifest: Mapping[str, Any]) -> Json:
    """The manifest in the folder, if it is of the run that was asked for.

    Raises:
        InvalidRequest: it is of another; the message says what differs.
    """
    earlier = read_manifest(path)
    for name in ("kind", "workload", "plan"):
        if earlier.get(name) != manifest[name]:
            raise InvalidRequest(
                f"{path} holds another run: its {name} differs; repeat its options, or give another --out"
            )
    return earlier
