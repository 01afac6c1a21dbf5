"""A live workload under ``vision-bench run``: a film plays, and receipts are in the records and the summary."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.integration.live_rig import live_gateway
from tests.integration.stub_upstream import StubRequest, answers, streams, stub_upstream
from tests.integration.test_client_live import chunks, film_of

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "run-summary.schema.json").read_bytes())
LISTED = {"object": "list", "data": [{"id": "qwen"}]}
HEAD = 'name = "live"\nkind = "chat"\nmodel = "qwen"\nprompt = "what?"\nmedia = "live"\nmax_tokens = 8\n[live]\n'


async def _behave(request: StubRequest, writer: Any) -> None:
    await (answers(LISTED) if request.path.endswith("/models") else streams(chunks("a", "b")))(request, writer)


async def _run(*words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vision_bench.cli", "run", *words), stderr=asyncio.subprocess.PIPE
    )
    _, told = await process.communicate()
    return process.returncode or 0, told.decode()


@pytest.mark.parametrize(
    ("look", "part"),
    [('look = "frame"', "image_url"), ('look = "segment"\nseconds = 0.5\nmax_fps = 10.0', "video_url")],
)
async def test_a_live_workload_is_measured(tmp_path: Path, look: str, part: str) -> None:
    """Six questions about a film that plays: each record holds the gateway's receipt, the summary the age of the frames
    and the stages; the film's hash is in the manifest; the stream is deleted at the end."""
    film_of(tmp_path / "film.mp4")
    (tmp_path / "live.toml").write_text(f'{HEAD}film = "film.mp4"\npublish_fps = 10.0\n{look}\n', encoding="utf-8")
    async with stub_upstream(_behave) as upstream, live_gateway(upstream) as gateway:
        out = tmp_path / "out"
        words = ("--target", f"{gateway.url}/v1", "--concurrency", "1", "--requests", "6", "--warmup", "0")
        status, told = await _run(str(tmp_path / "live.toml"), *words, "--out", str(out))
        assert status == 0, told
        records = [json.loads(line) for line in (out / "records.jsonl").read_text(encoding="utf-8").splitlines()]
        stream_id = records[0]["receipt"]["frames"][0]["stream_id"]
        assert (await gateway.client.get(f"/v1beta/streams/{stream_id}")).json()["end_reason"] == "deleted"
    sent = [one.json() for one in upstream.requests if one.path.endswith("/chat/completions")]
    assert {body["messages"][0]["content"][0]["type"] for body in sent} == {part}
    asked = [record for record in records if record.get("receipt")]
    assert len(asked) == 6
    assert all(record["receipt"]["frames"] and record["receipt"]["stamps"] for record in asked)
    assert not any(record["is_repeat"] for record in asked)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(summary, SCHEMA)
    server_ms = summary["steps"][0]["server_ms"]
    stages = {f"receipt_{name}_ms" for name in ("capture", "selection", "encode", "queue", "first_token")}
    assert {"frame_age_ms", "queue_ms", *stages} <= set(server_ms)
    assert server_ms["frame_age_ms"]["count"] == 6
    _check_receipts(summary["steps"][0]["receipts"])
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["workload"]["files"]) == {"film.mp4"}


def _check_receipts(receipts: dict[str, Any]) -> None:
    """Three clocks: camera, gateway and run; every answer has its stages, and what crosses clocks is a range."""
    assert receipts["answers"] == receipts["frames"]["age_ms"]["count"] == 6
    rows = {row["stage"]: row for row in (*receipts["stages"], *receipts["totals"])}
    for name in ("capture", "selection", "encode", "queue", "first_token", "parse", "validation", "workflow"):
        assert (rows[name]["ms"]["count"], len(rows[name]["clocks"])) == (6, 1), name
    for name in ("transport", "request", "sse_transport", "capture_to_first_token", "capture_to_answer"):
        assert (rows[name]["high_ms"]["count"], len(rows[name]["clocks"])) == (6, 2), name
        # All processes of a test read one clock: the offset is nothing, within its bound.
        assert abs(rows[name]["offset"]["offset_ms"]) <= rows[name]["offset"]["bound_ms"]["max"] + 1e-3
    assert rows["decode"]["source"] == rows["upstream_prefill"]["source"] == "unknown"
    assert rows["decode"]["problems"] == {"no_stamp": 6}


async def test_a_gateway_without_streams_is_told(tmp_path: Path) -> None:
    """The film cannot be published: the run ends before its clock starts, and says what to look at."""
    film_of(tmp_path / "film.mp4")
    (tmp_path / "live.toml").write_text(f'{HEAD}film = "film.mp4"\nlook = "frame"\n', encoding="utf-8")
    async with stub_upstream(_behave) as upstream:
        words = ("--target", upstream.base_url, "--concurrency", "1", "--requests", "2", "--out", str(tmp_path / "out"))
        status, told = await _run(str(tmp_path / "live.toml"), *words)
    assert status == 3
    assert "LIVE_ENABLED" in told
