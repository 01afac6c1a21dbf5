"""What the page at / shows of the gateway, live: servers, models, permits, the queue. Arithmetic alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vision_bench.gateway.fleet import Fleet, state_of
from vision_bench.gateway.readiness import Report

Json = dict[str, Any]


def servers_shown(report: Report, fleet: Fleet) -> list[Json]:
    """Each server in the order of VLLM_BASE_URL: what it said of itself, and its permits now."""
    return [
        {
            "address": server.address,
            "reachable": server.is_reachable,
            "set_aside": upstream.is_set_aside,
            "permits": upstream.lane.permits,
            "in_use": upstream.in_use,
            "last_error": server.last_error,
        }
        for server, upstream in zip(report.servers, fleet.upstreams, strict=True)
    ]


def models_shown(report: Report, fleet: Fleet, *, passthrough_urls: Collection[str] = ()) -> list[Json]:
    """Each model that a server lists, by name, with its state and the permits of the servers that have it."""
    holders: dict[str, list[int]] = {}
    for place, server in enumerate(report.servers):
        for name in server.models or ():
            holders.setdefault(name, []).append(place)
    shown = []
    for name, places in sorted(holders.items()):
        upstreams = [fleet.upstreams[place] for place in places]
        shown.append(
            {
                "id": name,
                "state": state_of(upstreams),
                "kind": "passthrough" if upstreams[0].url in passthrough_urls else "hosted",
                "servers": len(upstreams),
                "permits": sum(upstream.lane.permits for upstream in upstreams),
                "in_use": sum(upstream.in_use for upstream in upstreams),
            }
        )
    return shown
