"""Clips under load: unique ones, and ones that are encoded inside the clock."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.integration.bench_rig import workload_file
from tests.integration.stub_upstream import StubUpstream, stub_upstream
from tests.integration.tiny_clips import write_clips

from vision_bench.bench.arrivals import parse_process
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.plan import LoadPlan
from vision_bench.bench.run import RunOptions, run
from vision_bench.bench.rundir import read_records
from vision_bench.errors import InvalidRequest
from vision_bench.media.probe import probe

VIDEO: dict[str, Any] = {"media": "video", "clips": "clips", "stream": False, "fps": 2.0, "use_audio": True}


async def clips_sent(
    stub: StubUpstream, folder: Path, *, count: int = 6, values: dict[str, Any], **load: Any
) -> list[bytes]:
    write_clips(folder / "clips", 2)
    file = workload_file(folder, **VIDEO | values)
    plan = LoadPlan(
        **{"rates": [50], "concurrency": (), "arrivals": parse_process("constant"), "max_requests": count} | load
    )
    await run(RunOptions(file, f"http://127.0.0.1:{stub.port}/chat", folder / "run", plan))
    bodies = [request.json() for request in stub.requests if request.path == "/chat"]
    assert all(body["mm_processor_kwargs"] == {"use_audio_in_video": True} for body in bodies)
    assert all(body["media_io_kwargs"] == {"video": {"fps": 2.0}} for body in bodies)
    parts = [body["messages"][0]["content"] for body in bodies]
    assert all([part["type"] for part in one] == ["video_url", "text"] for one in parts)
    return [base64.b64decode(one[0]["video_url"]["url"].removeprefix("data:video/mp4;base64,")) for one in parts]


async def test_unique_clips_are_clips_and_all_different(tmp_path: Path) -> None:
    """Each can be opened, with picture and sound, and no two are the same bytes."""
    async with stub_upstream() as stub:
        clips = await clips_sent(stub, tmp_path, values={"cache": "unique"})
    assert len({hashlib.sha256(clip).digest() for clip in clips}) == len(clips) == 6
    for clip in clips:
        info = probe(clip, name="variant")
        assert info.video is not None and info.video.frames == 8 and info.has_audio
    assert not any(record.is_repeat for record in read_records(tmp_path / "run", ChatRecord))


async def test_repeated_clips_are_the_files(tmp_path: Path) -> None:
    """Byte for byte, in turn."""
    async with stub_upstream() as stub:
        clips = await clips_sent(stub, tmp_path, values={})
    files = [path.read_bytes() for path in sorted((tmp_path / "clips").iterdir())]
    assert clips == files * 3


async def test_encoding_inside_the_clock_is_stamped(tmp_path: Path) -> None:
    """Read, encoded and written between the decision and the first byte: it is in the workflow's time."""
    async with stub_upstream() as stub:
        clips = await clips_sent(stub, tmp_path, values={"encode": "inside"})
    assert clips == [path.read_bytes() for path in sorted((tmp_path / "clips").iterdir())] * 3
    for record in read_records(tmp_path / "run", ChatRecord):
        stamps = [
            record.dec_ns,
            record.sel_ns,
            record.enc_ns,
            record.ser_ns,
            record.con_ns,
            record.hdr_ns,
            record.val_ns,
        ]
        assert None not in stamps and stamps == sorted(stamps)  # type: ignore[type-var]


@pytest.mark.parametrize("encode", ["before", "inside"])
async def test_frames_are_pictures_and_a_wav(encode: str, tmp_path: Path) -> None:
    """Four evenly spread JPEG frames, the sound, the text: for servers that read no video."""
    write_clips(tmp_path / "clips", 1)
    values = {
        "media": "frames",
        "clips": "clips",
        "num_frames": 4,
        "use_audio": True,
        "stream": False,
        "encode": encode,
    }
    async with stub_upstream() as stub:
        plan = LoadPlan(rates=[50], concurrency=(), arrivals=parse_process("constant"), max_requests=2)
        options = RunOptions(
            workload_file(tmp_path, **values), f"http://127.0.0.1:{stub.port}/chat", tmp_path / "run", plan
        )
        summary = await run(options)
        body = next(request.json() for request in stub.requests if request.path == "/chat")
    assert summary["steps"][0]["media"] == "frames, 4 frames, with sound"
    assert (summary["steps"][0]["requests"]["ok"], summary["steps"][0]["encode"]) == (2, encode)
    parts = body["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["image_url"] * 4 + ["input_audio", "text"]
    assert all(part["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/") for part in parts[:4])
    assert base64.b64decode(parts[4]["input_audio"]["data"]).startswith(b"RIFF")
    assert "media_io_kwargs" not in body and "mm_processor_kwargs" not in body


async def test_unique_clips_need_a_number_of_requests(tmp_path: Path) -> None:
    """A closed loop that time alone ends cannot have them made before; nothing is written."""
    async with stub_upstream() as stub:
        with pytest.raises(InvalidRequest, match="--requests"):
            await clips_sent(stub, tmp_path, values={"cache": "unique"}, rates=(), concurrency=[1], max_requests=None)
    assert not (tmp_path / "run").exists()
