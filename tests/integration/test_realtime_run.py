"""Runs of generated video against the reference server, from the workload file to the numbers in the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.realtime_rig import HEIGHT, MODEL, WIDTH, fast, picture_url, realtime_engine

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.session import Status
from vision_bench.bench.summary import write_summary
from vision_bench.errors import UnknownName

WORKLOAD = {"image": picture_url(), "width": WIDTH, "height": HEIGHT, "num_chunks": 9}


async def measured(folder: Path, target: str, workload: str | dict[str, Any], **options: Any) -> dict[str, Any]:
    """A run's summary; ``plan`` holds what the load is to be."""
    file = folder / ("w.toml" if isinstance(workload, str) else "w.json")
    file.write_text(workload if isinstance(workload, str) else json.dumps(workload))
    load: dict[str, Any] = {"rates": (), "concurrency": (), **options.pop("plan", {})}
    own = {"model": MODEL, **options.pop("own", {})}
    on_status = options.pop("on_status", None)
    plan = LoadPlan(arrivals=parse_process("poisson"), **load)
    return await run(RunOptions(file, target, folder / "run", plan, own=own, **options), on_status=on_status)


def toml(**keys: Any) -> str:
    """Our form of the workload, with keys of its own; values as JSON, which TOML's are here."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**WORKLOAD, **keys}.items()]
    return "\n".join(['name = "made"', 'kind = "realtime"', *lines])


async def test_one_session_from_the_published_file_to_every_number(tmp_path: Path) -> None:
    """Without a load one session runs; its video is decoded, its marks read back, its clock judged by the server's."""
    async with realtime_engine(fast(ttfc_ms=60, chunk_ms=40)) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD)
    (step,) = summary["steps"]
    assert (summary["kind"], step["requests"]["ok"], step["requests"]["due"]) == ("realtime", 1, 1)
    assert step["startup"]["ttfc_ms"]["count"] == step["startup"]["first_decodable_frame_ms"]["count"] == 1
    assert step["chunks"]["received"] == 9
    assert (step["integrity"]["whole"], step["integrity"]["decoded"], step["integrity"]["frames_missing"]) == (1, 1, 0)
    assert step["integrity"]["repeated_frames"] == 0
    pixels = step["pixels"]
    assert (pixels["pictures"], pixels["read"], pixels["other_number"], pixels["other_chunk"]) == (105, 105, 0, 0)
    error = step["client_error"]
    assert (error["ttfc_ms"]["count"], error["interval_ms"]["count"], error["frames_without_truth"]) == (1, 9, 0)
    assert error["queue_wait_ms"]["count"] == error["stalls"]["sessions"] == 1
    assert set(error["median_absolute_ms"]) == {"ttfc_ms", "interval_ms", "queue_wait_ms"}
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert len(report["sessions"][0]["chunks"]) == 9
    assert (report["metrics"]["sessions"], report["metrics"]["steady_chunks"]) == (1, 2)
    assert report["workload"]["num_frames"] == 105
    assert not (tmp_path / "run" / "videos").exists()


async def test_a_model_that_the_server_does_not_serve_first(tmp_path: Path) -> None:
    """Said before anything is written, with the name that it serves."""
    async with realtime_engine(fast()) as rig:
        with pytest.raises(UnknownName, match="give --model lingbot-world"):
            await measured(tmp_path, rig.socket_url, WORKLOAD, own={"model": "other"})
    assert not (tmp_path / "run").exists()


async def test_two_sessions_at_once_queue_at_the_server(tmp_path: Path) -> None:
    """The second waits for the first in silence; the wait worked out is the wait declared, roughly."""
    async with realtime_engine(fast(ttfc_ms=100, chunk_ms=30)) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD, plan={"concurrency": [2]})
    (step,) = summary["steps"]
    assert step["requests"]["ok"] == 2
    assert step["queue_wait_ms"]["max"] > 200
    assert step["client_error"]["queue_wait_ms"]["max"] < step["queue_wait_ms"]["max"]
    first, second = sorted(step["each"], key=lambda one: one["ttfc_ms"])
    assert second["ttfc_ms"] - first["ttfc_ms"] > 150


async def test_live_camera_events_are_followed_into_the_pixels(tmp_path: Path) -> None:
    """Sent after chunk 1 it begins three chunks later, or more on a machine that is late; in the pixels just there."""
    workload = toml(num_chunks=9) + "\n[[camera_events]]\nafter_chunk = 1\ntranslation = [0, 0, 0.05]\n"
    async with realtime_engine(fast(chunk_ms=100)) as rig:
        summary = await measured(tmp_path, rig.socket_url, workload)
    (step,) = summary["steps"]
    events = step["interactions"]
    assert (events["sent"], events["acked"], events["started"]) == (1, 1, 1)
    assert 3 <= events["first_affected_chunks"]["max"] <= 7
    assert (step["pixels"]["events_started"], step["pixels"]["events_seen_there"]) == (1, 1)
    assert step["client_error"]["first_affected_ms"]["count"] == 1


async def test_a_dropped_connection_is_named_and_the_next_session_judged(tmp_path: Path) -> None:
    """The server cuts session 1; what the next one waited is beside those that nothing disturbed."""
    async with realtime_engine(fast("drop@3#1", ttfc_ms=50, chunk_ms=20)) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD, plan={"concurrency": [1], "max_requests": 3})
    (step,) = summary["steps"]
    assert step["requests"]["outcomes"] == {"connection_lost": 1, "ok": 2}
    (recovery,) = step["recovery"]
    assert (recovery["dropped"], recovery["next"]) == (1, 2)
    assert recovery["undisturbed_ttfc_ms"]["count"] == 1
    assert recovery["next_ttfc_ms"] > 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert [one["outcome"] for one in report["failed_sessions"]] == ["connection_lost"]


async def test_faults_end_sessions_by_their_names(tmp_path: Path) -> None:
    """A late refusal, an error in mid-stream, a rollout cut short; and each time the next session is served."""
    faults = ("error@0#0", "error@4#1", "short@5#2")
    async with realtime_engine(fast(*faults)) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD, plan={"concurrency": [1], "max_requests": 4})
    (step,) = summary["steps"]
    assert [one["outcome"] for one in step["each"]] == ["late_error", "session_error", "short_rollout", "ok"]


async def test_a_refused_geometry_and_a_prompt_that_kills(tmp_path: Path) -> None:
    """Both are acknowledged first: the size by video.start, the prompt by queued; the detail says what was hanging."""
    update = {"after_chunk": 1, "prompt": "rain"}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with realtime_engine(fast(chunk_ms=150)) as rig:
        wide = await measured(tmp_path / "a", rig.socket_url, WORKLOAD, own={"width": WIDTH + 16})
        rain = await measured(tmp_path / "b", rig.socket_url, {**WORKLOAD, "prompt_updates": [update]})
    assert wide["steps"][0]["requests"]["outcomes"] == {"late_error": 1}
    (failure,) = rain["steps"][0]["failures"]
    assert failure["outcome"] == "session_error"
    assert "never started: chunk-1" in failure["detail"]


async def test_sessions_arrive_stop_and_leave(tmp_path: Path) -> None:
    """Three at random times: one leaves after chunk 2, all others stop after chunk 4; the next after it is judged."""
    workload = toml(stop_after_chunk=4, drop_after_chunk=2, drop_sessions=[0])
    async with realtime_engine(fast(ttfc_ms=30, chunk_ms=30)) as rig:
        plan = {"rates": [4], "max_requests": 3, "concurrency": [1]}
        summary = await measured(tmp_path, rig.socket_url, workload, plan=plan)
    (step,) = summary["steps"]
    assert (step["arrivals"], step["requests"]["outcomes"]) == ("poisson", {"ok": 3})
    assert [one["chunks"] >= 5 for one in step["each"]] == [False, True, True]
    assert step["stop_to_done_ms"]["count"] == 2
    (recovery,) = step["recovery"]
    assert (recovery["dropped"], recovery["next"]) == (0, 1)


async def test_a_stall_is_a_stall_on_both_sides(tmp_path: Path) -> None:
    """Watched so fast that nothing is ahead, 1.5 s late: the same player stalls over both clocks."""
    async with realtime_engine(fast("stall@6=1500", chunk_ms=20)) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD, own={"target_fps": 240.0})
    (step,) = summary["steps"]
    assert step["pictures"]["stalls"] >= 1
    stalls = step["client_error"]["stalls"]
    assert stalls["sessions"] == stalls["total_stall_ms"]["count"] == 1
    assert abs(stalls["total_stall_ms"]["max"]) < 1000


async def test_chunks_held_back_are_no_failure(tmp_path: Path) -> None:
    """A chunk without bytes is not announced; its pictures come with the next, and none is missing."""
    async with realtime_engine(fast("empty@3")) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD)
    (step,) = summary["steps"]
    assert step["requests"]["ok"] == 1
    assert step["oddities"]["chunks_not_announced"] == 1
    assert (step["pixels"]["other_number"], step["pixels"]["other_chunk"]) == (0, 0)


async def test_warm_up_sessions_are_counted_and_left_out(tmp_path: Path) -> None:
    """One after the other before the step; the first of them is the cold one."""
    async with realtime_engine(fast(ttfc_ms=20)) as rig:
        summary = await measured(tmp_path, rig.socket_url, toml(server_was_fresh=True), warm_up=2)
    (step,) = summary["steps"]
    assert (step["sessions"]["measured"], step["sessions"]["warmup"]) == (1, 2)
    assert step["cold"]["warm_ttfc_ms"]["count"] == 2
    assert step["cold"]["cold_ttfc_ms"] > 0


async def test_a_video_that_is_kept_and_a_run_that_was_killed(tmp_path: Path) -> None:
    """Without its records and with half a line in the journal the folder still gives the session and its pictures."""
    async with realtime_engine(fast()) as rig:
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD, own={"save_video": True})
    folder = tmp_path / "run"
    assert [path.name for path in (folder / "videos").iterdir()] == ["000000.mp4"]
    (folder / "records.jsonl").write_bytes(b"")
    (folder / "pictures.jsonl").unlink()
    steps = (folder / "steps.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "steps.jsonl").write_bytes(steps[0])
    lines = (folder / "facts.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "facts.jsonl").write_bytes(b"".join(lines[:16]) + b'{"sess')
    again = write_summary(folder)
    assert summary["is_complete"]
    assert not again["is_complete"]
    (step,) = again["steps"]
    assert step["requests"]["outcomes"] == {"lost": 1}
    assert step["chunks"]["received"] == 6
    assert step["integrity"]["decoded"] == 1


async def test_a_report_made_while_the_run_goes_on_takes_no_video_from_it(tmp_path: Path) -> None:
    """It says what is over; the videos are decoded, and go, when the run is over."""
    seen: list[dict[str, Any]] = []

    def look(status: Status) -> None:
        if not seen and status.ok:  # one session is over, another under way
            seen.append(write_summary(tmp_path / "run"))

    async with realtime_engine(fast(chunk_ms=120)) as rig:
        summary = await measured(
            tmp_path, rig.socket_url, WORKLOAD, plan={"concurrency": (1,), "max_requests": 3}, on_status=look
        )
    (meanwhile,) = seen
    assert meanwhile["steps"][0]["integrity"]["decoded"] == 0
    (step,) = summary["steps"]
    assert (step["integrity"]["decoded"], step["integrity"]["whole"], step["pixels"]["pictures"]) == (3, 3, 315)
    assert not (tmp_path / "run" / "videos").exists()


async def test_a_killed_run_that_was_reported_goes_on_without_mixing_its_sessions(tmp_path: Path) -> None:
    """A resumed run counts on from the sessions that were lost, too: no video, picture or fact of theirs is its."""
    async with realtime_engine(fast()) as rig:
        await measured(tmp_path, rig.socket_url, WORKLOAD, own={"save_video": True})
        folder = tmp_path / "run"
        (folder / "records.jsonl").write_bytes(b"")
        (folder / "pictures.jsonl").unlink()
        (folder / "steps.jsonl").write_bytes((folder / "steps.jsonl").read_bytes().splitlines(keepends=True)[0])
        lines = (folder / "facts.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "facts.jsonl").write_bytes(b"".join(lines[:16]))
        video = folder / "videos" / "000000.mp4"
        video.write_bytes(video.read_bytes()[:20_000])
        cut = write_summary(folder)["steps"][0]
        assert cut["pixels"]["pictures"] < 105
        summary = await measured(tmp_path, rig.socket_url, WORKLOAD, own={"save_video": True}, is_resumed=True)
    (step,) = summary["steps"]
    assert sorted(path.name for path in (folder / "videos").iterdir()) == ["000000.mp4", "000001.mp4"]
    assert (video.stat().st_size, step["each"][0]["session"]) == (20_000, 1)
    assert (step["integrity"]["whole"], step["pixels"]["pictures"]) == (1, 105)
