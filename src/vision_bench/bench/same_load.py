"""Whether two runs were given the same thing to do: workload, schedules, payloads. Arithmetic on two manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]

_WIRE = ("wire", "batch_size", "streams", "slo")
_STEP = ("name", "round", "schedule_sha256", "concurrency", "window_ns", "max_requests")
MOST_NAMED = 6


def differences(a: Json, b: Json) -> list[str]:
    """What the two runs differ in, in words; nothing where their latencies can be compared.

    Target, machine and versions may differ: they are what a comparison is about.
    """
    if a["kind"] != b["kind"]:
        return [f"kind: {a['kind']} against {b['kind']}"]
    found = _of_workload(a["workload"], b["workload"])
    found += [
        f"{name}: {a['workload'].get(name)} against {b['workload'].get(name)}"
        for name in _WIRE
        if a["workload"].get(name) != b["workload"].get(name)
    ]
    if a["workload"].get("bodies") != b["workload"].get("bodies"):
        found.append("payloads: the hashes of the bodies differ")
    seeds = [(run.get("load") or {}).get("seed") for run in (a, b)]
    if seeds[0] != seeds[1]:
        found.append(f"seed: {seeds[0]} against {seeds[1]}")
    warm_ups = [(run.get("load") or {}).get("warm_up") for run in (a, b)]
    if warm_ups[0] != warm_ups[1]:  # what is sent goes by a request's place in the run
        found.append(f"warm-up: {warm_ups[0]} requests against {warm_ups[1]}")
    return found + _of_plan(a["plan"], b["plan"])


def _of_workload(a: Json, b: Json) -> list[str]:
    if a["fingerprint"] == b["fingerprint"]:
        return []
    values, others = a["values"], b["values"]
    keys = [key for key in sorted({*values, *others}) if key != "name" and values.get(key) != others.get(key)]
    said = [
        f"workload, {key}: {_short(values.get(key))} against {_short(others.get(key))}" for key in keys[:MOST_NAMED]
    ]
    if a.get("files") != b.get("files"):
        said.append("workload: the files that it names differ")
    return said or [f"workload: fingerprint {a['fingerprint']} against {b['fingerprint']}"]


def _of_plan(a: Any, b: Any) -> list[str]:
    if not isinstance(a, Sequence) or not isinstance(b, Sequence):  # a sweep's steps come of what it meets
        return [] if a == b else ["plan: one run or both found their steps by themselves"]
    if len(a) != len(b):
        return [f"steps: {len(a)} against {len(b)}"]
    found = []
    for mine, other in zip(a, b, strict=True):
        for key in _STEP:
            if mine.get(key) != other.get(key):
                what = "schedule" if key == "schedule_sha256" else key
                found.append(
                    f"step {mine.get('name')}, {what}: {_short(mine.get(key))} against {_short(other.get(key))}"
                )
                break
    return found[:MOST_NAMED]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
