"""The soak in short: one pass of it, whose plan and checks are those of `python -m benchmarks.soak`."""

from __future__ import annotations

from benchmarks.soak.checks import check, table, unexpected
from benchmarks.soak.faults import ITEM, PLAIN, REFUSED, STREAM
from benchmarks.soak.plan import LEAVES, plan_pass
from benchmarks.soak.run import soak


def test_a_plan_is_its_seed() -> None:
    """The same seed gives the same requests, byte for byte; another seed gives others."""
    plans = [plan_pass(seed=seed, requests=300, crowd=10, name="x") for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert sum(len(chapter.asks()) for chapter in plans[0]) == 300
    payloads = [[ask.payload() for chapter in plan for ask in chapter.asks()] for plan in plans[:2]]
    assert payloads[0] == payloads[1]


def test_a_pass_of_the_long_soak_holds_everything() -> None:
    """Every fault, every way to leave and every refusal stands in a third of 20,000 requests, and no marker twice."""
    asks = [ask for chapter in plan_pass(seed=0, requests=6667, crowd=48) for ask in chapter.asks()]
    of_kind = {kind: {call.fault for ask in asks if ask.kind == kind for call in ask.calls} for kind in _KINDS}
    assert of_kind["chat"] >= PLAIN.keys()
    assert of_kind["stream"] >= STREAM.keys()
    assert of_kind["batch"] >= ITEM.keys()
    assert {ask.leaves for ask in asks} == {"", *LEAVES}
    assert {ask.refused for ask in asks} == {"", *REFUSED}
    markers = [ask.marker for ask in asks]
    assert len(set(markers)) == len(markers)


_KINDS = ("chat", "stream", "batch")


async def test_a_short_soak_leaves_nothing_behind() -> None:
    """240 requests with faults on both sides and a restart of the upstream: everything ends as planned, and permits,
    connections, files and log are as they must be."""
    said: list[str] = []
    run = await soak(requests=240, passes=1, seed=3, crowd=0, say=said.append)
    assert said
    assert sum(sum(row.values()) for name, row in table(run).items() if not name.startswith("item ")) == 240
    assert unexpected(run) == []
    assert [one for one in check(run) if one.holds is False] == []
    assert {one.name for one in check(run) if one.holds is None} == {"settled memory does not grow"}
