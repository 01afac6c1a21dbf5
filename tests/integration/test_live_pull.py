"""Streams that the gateway pulls: a film file, a play list over HTTP, a camera over RTSP, all on this machine."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from tests.integration.gateway_rig import until
from tests.integration.live_rig import level_of, live_gateway, live_of, stream_of
from tests.integration.rtsp_camera import rtsp_camera
from tests.integration.stub_upstream import StubRequest, response, stub_upstream

NOWHERE = "http://127.0.0.1:9/v1"


def pulling() -> int:
    """Threads that pull."""
    return sum(thread.name == "live-pull" for thread in threading.enumerate())


def film(path: Path, *, fps: int = 10, frames: int = 10, size: tuple[int, int] = (64, 48), **options: Any) -> None:
    """Grey pictures that become lighter."""
    with av.open(str(path), "w", **options) as container:
        track: Any = container.add_stream("libx264", rate=fps)
        width, height = size
        track.width, track.height, track.pix_fmt = width, height, "yuv420p"
        track.options = {"g": str(fps)}
        for index in range(frames):
            picture = np.full((height, width, 3), 40 + 5 * (index % 20), np.uint8)
            container.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(track.encode(None))


async def test_a_film_stands_in_for_a_camera(tmp_path: Path) -> None:
    """At its own pace, and over again when it has ended; deleting the stream ends its thread."""
    film(tmp_path / "film.mp4", fps=20, frames=10)
    async with live_gateway(NOWHERE, live_pull_folder=tmp_path) as rig:
        answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "file", "url": "film.mp4"}})
        body = answer.json()
        assert (answer.status_code, body["publish"], body["source"]) == (201, None, {"type": "file"})
        ring = stream_of(rig, body["id"]).ring
        await until(lambda: ring.next_index >= 16, within_seconds=60)
        frames = list(ring)[:16]
        assert abs(level_of(frames[0].jpeg) - 40) < 5
        steps = np.diff([frame.stream_ns for frame in frames]) / 1e6
        assert 30 < np.median(steps) < 100
        state = (await rig.client.get(f"/v1beta/streams/{body['id']}")).json()
        assert state["last_pull"] is not None
        assert pulling() == 1
        await rig.client.delete(f"/v1beta/streams/{body['id']}")
        await until(lambda: pulling() == 0, within_seconds=30)


async def test_a_film_of_one_picture_keeps_nobody_busy(tmp_path: Path) -> None:
    """It is shown once a second, not as fast as it can be opened, and no frame of it is refused for that."""
    film(tmp_path / "still.mp4", frames=1)
    async with live_gateway(NOWHERE, live_pull_folder=tmp_path) as rig:
        answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "file", "url": "still.mp4"}})
        stream = stream_of(rig, answer.json()["id"])
        await until(lambda: stream.ring.next_index >= 3, within_seconds=60)
        times = [frame.stream_ns / 1e9 for frame in stream.ring]
        assert all(later - earlier > 0.7 for earlier, later in pairwise(times))
        assert not stream.dropped


async def test_no_file_outside_the_folder(tmp_path: Path) -> None:
    """Neither by dots, nor by a root, nor by a link: 422, the same words, and no stream."""
    film(tmp_path / "secret.mp4")
    inside = tmp_path / "films"
    inside.mkdir()
    (inside / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    async with live_gateway(NOWHERE, live_pull_folder=inside) as rig:
        for name in ("../secret.mp4", "/etc/passwd", "none.mp4", "", "a\x00b", "link.mp4"):
            answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "file", "url": name}})
            assert answer.status_code == 422
            assert "passwd" not in answer.text
            assert not list(live_of(rig).registry)


async def test_a_camera_over_rtsp(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pictures come; it hangs up once and is opened again; its URL, user and path are told to nobody."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("vision_bench.live.pull.SHORT_NS", 500_000_000)
    async with rtsp_camera(frames_each=30) as camera, live_gateway(NOWHERE, live_pull_hosts="127.0.0.1") as rig:
        answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "rtsp", "url": camera.url}})
        assert answer.status_code == 201, answer.text
        path = f"/v1beta/streams/{answer.json()['id']}"
        ring = stream_of(rig, answer.json()["id"]).ring
        await until(lambda: camera.connections == 2, within_seconds=90)
        seen = ring.next_index
        assert seen > 10
        await until(lambda: ring.next_index > seen + 3, within_seconds=60)
        state = await rig.client.get(path)
        for text in (answer.text, state.text, caplog.text):
            assert "secret-path" not in text
            assert "hush" not in text
        assert state.json()["source"] == {"type": "rtsp"}
        await rig.client.delete(path)
    await until(lambda: pulling() == 0, within_seconds=30)


async def test_a_source_that_keeps_ending_ends_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice in quick succession: the stream is told as expired."""
    monkeypatch.setattr("vision_bench.live.pull.FIRST_WAIT_SECONDS", 0.1)
    async with rtsp_camera(frames_each=3) as camera, live_gateway(NOWHERE, live_pull_hosts="127.0.0.1") as rig:
        answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "rtsp", "url": camera.url}})
        assert answer.status_code == 201
        stream = stream_of(rig, answer.json()["id"])
        await until(lambda: not stream.is_active, within_seconds=60)
        state = (await rig.client.get(f"/v1beta/streams/{stream.id}")).json()
        assert (state["state"], state["end_reason"]) == ("ended", "expired")
        assert camera.connections == 2


async def test_a_camera_that_is_not_allowed_or_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are 422 and leave no active stream; nobody connects to what is not allowed."""
    async with rtsp_camera() as camera, live_gateway(NOWHERE, live_pull_hosts="cam.example.org") as rig:
        answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "rtsp", "url": camera.url}})
        assert (answer.status_code, camera.connections) == (422, 0)
        assert "LIVE_PULL_HOSTS" in answer.json()["detail"]
    monkeypatch.setattr("vision_bench.live.pull.OPEN_SECONDS", 3.0)
    async with live_gateway(NOWHERE, live_pull_hosts="127.0.0.1") as rig:
        answer = await rig.client.post(
            "/v1beta/streams", json={"source": {"type": "rtsp", "url": "rtsp://127.0.0.1:9/x"}}
        )
        assert answer.status_code == 422
        assert "no picture" in answer.json()["detail"]
        assert not [stream for stream in live_of(rig).registry if stream.is_active]


@asynccontextmanager
async def play_list(
    folder: Path, change: dict[str, bytes], size: tuple[int, int] = (64, 48)
) -> AsyncIterator[tuple[str, list[str]]]:
    """An HLS play list over HTTP: its address, and the paths that were asked for. ``change``: other answers."""
    options = {"hls_time": "1", "hls_list_size": "0"}
    film(folder / "list.m3u8", fps=10, frames=40, size=size, format="hls", options=options)
    asked: list[str] = []

    async def behave(request: StubRequest, writer: asyncio.StreamWriter) -> None:
        asked.append(request.path)
        name = request.path.rpartition("/")[2]
        if name in change:
            writer.write(change[name])
        else:
            writer.write(response((folder / name).read_bytes(), content_type="application/octet-stream"))
        await writer.drain()

    async with stub_upstream(behave) as server:
        yield f"http://127.0.0.1:{server.port}/hush/list.m3u8", asked


async def test_a_play_list_is_pulled(tmp_path: Path) -> None:
    """Segment after segment, at the pace of its pictures and not of the network."""
    async with (
        play_list(tmp_path, {}) as (url, asked),
        live_gateway(NOWHERE, live_pull_hosts="127.0.0.1") as rig,
    ):
        answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "hls", "url": url}})
        assert answer.status_code == 201, answer.text
        ring = stream_of(rig, answer.json()["id"]).ring
        await until(lambda: ring.next_index >= 12, within_seconds=60)
        steps = np.diff([frame.stream_ns for frame in list(ring)[:12]]) / 1e6
        assert 50 < np.median(steps) < 200
        assert len(asked) >= 2


@pytest.mark.parametrize(
    "elsewhere", ["http://169.254.169.254/latest", "file:///etc/passwd", "http://127.0.0.2:{port}/x"]
)
async def test_a_play_list_leads_nowhere_else(elsewhere: str, tmp_path: Path) -> None:
    """Segments that it names on other hosts or in files are not fetched, nor what a redirect names."""
    async with stub_upstream() as inside:
        target = elsewhere.format(port=inside.port)
        listed = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{target}\n#EXT-X-ENDLIST\n".encode()
        moved = response(b"", status=302, extra=[f"Location: {target}"])
        for change in ({"list.m3u8": response(listed)}, {"list.m3u8": moved}):
            async with (
                play_list(tmp_path, change) as (url, _),
                live_gateway(NOWHERE, live_pull_hosts="127.0.0.1") as rig,
            ):
                answer = await rig.client.post("/v1beta/streams", json={"source": {"type": "hls", "url": url}})
                assert answer.status_code == 422
                assert "hush" not in answer.text
        assert inside.requests == []


@pytest.mark.parametrize("kind", ["file", "hls"])
async def test_a_source_of_huge_pictures_is_refused(kind: str, tmp_path: Path) -> None:
    """422 with their size and the limit, before one is decoded; no stream and no thread stay."""
    async with (
        play_list(tmp_path, {}, size=(320, 240)) as (url, _),
        live_gateway(NOWHERE, live_pull_hosts="127.0.0.1", live_pull_folder=tmp_path, live_max_pixels=1000) as rig,
    ):
        film(tmp_path / "huge.mp4", size=(320, 240))
        source = {"type": kind, "url": url if kind == "hls" else "huge.mp4"}
        answer = await rig.client.post("/v1beta/streams", json={"source": source})
        assert answer.status_code == 422
        assert "320x240, 65536 pixels" in answer.json()["detail"]
        assert "hush" not in answer.text
        assert not [stream for stream in live_of(rig).registry if stream.is_active]
        await until(lambda: pulling() == 0, within_seconds=30)
