"""What the page shows of the servers behind the gateway."""

from __future__ import annotations

import pytest

from vision_bench.gateway.admission import Admission
from vision_bench.gateway.fleet import Fleet, state_of
from vision_bench.gateway.page_state import models_shown, servers_shown
from vision_bench.gateway.readiness import Report, ServerState

URLS = ("http://a/v1", "http://b/v1", "http://c/v1")


def fleet_of(permits: int = 2) -> Fleet:
    """Three servers that nobody calls."""
    admission = Admission(permits, upstreams=len(URLS), acquire_timeout_seconds=1.0)
    return Fleet(dict.fromkeys(URLS), admission)  # type: ignore[arg-type]


def report_of(*models: tuple[str, ...] | None) -> Report:
    """What they said of themselves."""
    return Report(
        tuple(
            ServerState(url, names is not None, names, False, None if names else "refused")
            for url, names in zip(URLS, models, strict=True)
        )
    )


@pytest.mark.parametrize(
    ("in_use", "set_aside", "state"),
    [
        ((0, 0, 0), (), "ready"),
        ((2, 2, 1), (), "ready"),
        ((2, 2, 2), (), "saturated"),
        ((0, 0, 0), (1,), "degraded"),
        ((2, 0, 2), (1,), "saturated"),
        ((0, 0, 0), (0, 1, 2), "unavailable"),
    ],
)
async def test_state(in_use: tuple[int, ...], set_aside: tuple[int, ...], state: str) -> None:
    """Of the servers in service all are full, or some of all are not in service; none in service is unavailable."""
    fleet = fleet_of()
    for upstream, count in zip(fleet.upstreams, in_use, strict=True):
        upstream.lane.in_use = count
    for place in set_aside:
        fleet.upstreams[place].lane.set_aside_ns = 1
    assert state_of(fleet.upstreams) == state
    assert state_of([]) == "unavailable"


async def test_a_model_has_the_permits_of_the_servers_that_list_it() -> None:
    """By name; what a server without a list could have is nobody's, and its reason stands with the servers."""
    fleet = fleet_of()
    fleet.upstreams[0].lane.in_use = 2
    report = report_of(("small", "large"), ("large",), None)
    small, large = ("small", "saturated", 1, 2, 2), ("large", "ready", 2, 4, 2)
    shown = models_shown(report, fleet, passthrough_urls=(URLS[1],))
    keys = ("id", "state", "servers", "permits", "in_use")
    assert [tuple(model[key] for key in keys) for model in shown] == [large, small]
    assert {model["kind"] for model in shown} == {"hosted"}
    servers = servers_shown(report, fleet)
    assert [(server["reachable"], server["in_use"], server["last_error"]) for server in servers] == [
        (True, 2, None),
        (True, 0, None),
        (False, 0, "refused"),
    ]
    elsewhere = models_shown(report, fleet, passthrough_urls=URLS)
    assert {model["kind"] for model in elsewhere} == {"passthrough"}
