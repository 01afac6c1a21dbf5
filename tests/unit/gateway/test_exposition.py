"""/metrics: the names, against the manual and against Prometheus' conventions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.gateway.test_middleware import calling

MANUAL = Path(__file__).parents[3] / "docs" / "gateway.md"
PREFIX = "vision_bench_gateway_"


class Family(NamedTuple):
    """A line of the manual's table, or what the page says of one name."""

    name: str
    type: str
    labels: frozenset[str]


def documented() -> list[Family]:
    """The table under "Metrics" in the manual."""
    section = MANUAL.read_text().split("\n## Metrics\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\| [^|]+ \|$", section, re.MULTILINE)
    return [Family(PREFIX + name, type, frozenset(re.findall(r"`(\w+)`", labels))) for name, type, labels in rows]


async def page_after_some_requests() -> str:
    """A page on which every family has a sample."""
    async with calling() as client:
        await client.get("/healthz")
        await client.post("/chat/batch", json={"items": [{"id": "a", "body": {}}]})
        answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text


def families(page: str) -> list[Family]:
    """What the page holds of ours."""
    found = []
    for family in text_string_to_metric_families(page):
        if family.name.startswith(PREFIX):
            assert family.samples, f"{family.name} has no sample"
            labels = frozenset(label for sample in family.samples for label in sample.labels) - {"le"}
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found.append(Family(name, family.type, labels))
    return found


async def test_the_manual_and_the_page_name_the_same() -> None:
    """Name, type and labels: nothing on the page is undocumented, nothing in the manual is missing."""
    page = await page_after_some_requests()
    assert len(documented()) > 15
    assert sorted(families(page)) == sorted(documented())


async def test_names_follow_the_conventions() -> None:
    """Prefix, base units at the end, _total on counters and on nothing else, help on everything."""
    page = await page_after_some_requests()
    for name, type, labels in families(page):
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", name), name
        assert name.endswith("_total") == (type == "counter"), name
        assert type != "histogram" or name.endswith("_seconds"), name
        assert not re.search(r"_(ms|milliseconds|ns|kb|mib|count|sum|bucket)(_|$)", name), name
        assert not {label for label in labels if not re.fullmatch(r"[a-z][a-z_]*", label)}, name
        assert re.search(rf"^# HELP {name.removesuffix('_total')}(_total)? \S", page, re.MULTILINE), name


async def test_no_label_holds_what_a_caller_sent() -> None:
    """Paths, ids, methods, headers and queries of callers are on no page: labels stay few."""
    async with calling() as client:
        for method, path in (
            ("GET", "/secret"),
            ("SECRET", "/chat"),
            ("POST", "/secret/%22%0A"),
            ("GET", "/docs?secret"),
        ):
            await client.request(method, path, headers={"X-Request-Id": "secret", "X-Secret": "secret"})
        page = (await client.get("/metrics")).text
    assert "secret" not in page.lower()
    assert 'requests_total{outcome="not_found",route="other",status_class="4xx"} 2.0' in page
    assert 'requests_total{outcome="method_not_allowed",route="/chat",status_class="4xx"} 1.0' in page


async def test_two_applications_count_apart() -> None:
    """Nothing is kept in the module or in the library's global registry."""
    async with calling() as first, calling() as second:
        await first.get("/healthz")
        pages = [(await client.get("/metrics")).text for client in (first, second)]
    assert ['route="/healthz"' in page for page in pages] == [True, False]


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=abc", "text/plain;version=x", "*/*", ""])
async def test_whatever_is_accepted_the_page_comes(accept: str) -> None:
    """The library's own choice of a format fails on versions that are none."""
    async with calling() as client:
        answer = await client.get("/metrics", headers={"Accept": accept})
    assert answer.status_code == 200


async def test_with_keys_the_page_needs_one() -> None:
    """It tells how the GPU is used and where vLLM is."""
    async with calling(gateway_api_keys="k") as client:
        answers = [
            await client.get("/metrics"),
            await client.get("/metrics", headers={"Authorization": "Bearer k"}),
        ]
    assert [answer.status_code for answer in answers] == [401, 200]
