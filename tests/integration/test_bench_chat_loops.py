"""The measuring client in either event loop: what is stamped and read does not depend on it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.integration.bench_rig import shooting
from tests.integration.stub_upstream import streams, stub_upstream

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
CASES = json.loads((Path(__file__).parents[1] / "golden" / "wire_cases.json").read_text("utf-8"))["cases"]
PLAIN = next([base64.b64decode(piece) for piece in case["chunks"]] for case in CASES if case["id"] == "plain")


@pytest.mark.parametrize("new_loop", LOOPS.values(), ids=LOOPS)
def test_small_and_large_bodies_are_stamped_alike(new_loop: Callable[[], Any], tmp_path: Path) -> None:
    """First and last byte written, headers, events and end in order; a large body is written for some time."""

    async def main() -> None:
        async with stub_upstream(streams(PLAIN, gap_seconds=0.005)) as stub:
            for prompt in ("?", "가" * 700_000):
                async with shooting(stub.base_url, tmp_path, prompt=prompt) as shoot:
                    records = [await shoot()]
                    await asyncio.sleep(0.04)  # the end of the chunked body comes behind [DONE]
                    records.append(await shoot())
                assert stub.requests[-1].json()["messages"][0]["content"] == prompt
                for record in records:
                    stamps = [record.con_ns, record.hdr_ns, record.bod_ns, record.rsp_ns, *record.k_ns, record.end_ns]
                    assert None not in stamps and stamps == sorted(stamps)  # type: ignore[type-var]
                    assert (record.outcome, record.text, len(record.k_ns)) == ("ok", "안녕하세요 뉴스", 3)
                assert [record.is_new_connection for record in records] == [True, False]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("new_loop", LOOPS.values(), ids=LOOPS)
def test_breaks_are_outcomes_alike(new_loop: Callable[[], Any], tmp_path: Path) -> None:
    """A reset in the middle, silence, and a port that is closed."""

    async def main() -> list[str | None]:
        found = []
        async with stub_upstream() as stub, shooting(stub.base_url, tmp_path, timeout_seconds=0.4) as shoot:
            for then in ("reset", "silent"):
                stub.behaviour = streams(PLAIN[:2], then=then)
                found.append((await shoot()).outcome)
            stub.stop()
            await asyncio.sleep(0.05)
            found.append((await shoot()).outcome)
        return found

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(main()) == ["truncated", "upstream_timeout", "connect_failed"]
