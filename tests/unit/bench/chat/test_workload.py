"""Chat workloads: what a file may say, and the bodies that it becomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.chat.bodies import Item
from vision_bench.bench.chat.workload import Prepared, prepare, validity
from vision_bench.bench.workload import read_workload
from vision_bench.errors import InvalidRequest

SMALLEST = {"name": "w", "kind": "chat", "model": "qwen", "prompt": "Hello?", "media": "none", "max_tokens": 8}


def prepared(
    folder: Path, *, can_stream: bool = True, salt: str = "0", batch_size: int | None = None, **values: Any
) -> Prepared:
    path = folder / "w.toml"
    merged = {key: value for key, value in (SMALLEST | values).items() if value is not None}
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in merged.items()), "utf-8")
    return prepare(read_workload(path), can_stream=can_stream, salt=salt, batch_size=batch_size)


def body_of(item: Item) -> Any:
    data = b"".join(item.buffers)
    assert len(data) == item.size_bytes
    return json.loads(data)


def test_the_smallest_workload_is_a_prompt(tmp_path: Path) -> None:
    """Six keys and no other file; the body streams and asks for usage, without which no token can be counted."""
    made = prepared(tmp_path)
    assert body_of(made.bodies.item(0)) == {
        "model": "qwen",
        "messages": [{"role": "user", "content": "Hello?"}],
        "max_tokens": 8,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert made.workload.media_shape == "none" and made.bodies.count == 1


def test_what_is_not_said_is_not_sent_and_what_is_said_is(tmp_path: Path) -> None:
    """Budget under the name that was chosen, sampling, a system prompt, and keys as they go on the wire."""
    values = {
        "max_tokens": None,
        "max_completion_tokens": 9,
        "temperature": 0,
        "top_p": 0.5,
        "seed": 3,
        "system": "Be short.",
    }
    body = body_of(prepared(tmp_path, stream=False, **values).bodies.item(0))
    assert body == {
        "model": "qwen",
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello?"}],
        "temperature": 0,
        "max_completion_tokens": 9,
        "top_p": 0.5,
        "seed": 3,
    }


def test_a_batch_does_not_stream(tmp_path: Path) -> None:
    """One request holds as many bodies as were asked for, numbered; the next goes on where it ended."""
    made = prepared(tmp_path, can_stream=False, batch_size=3, cache="unique")
    first, second = made.bodies.item(0), made.bodies.item(1)
    items = body_of(first)["items"]
    assert [item["id"] for item in items] == ["0", "1", "2"] and "stream" not in items[0]["body"]
    prompts = [item["body"]["messages"][0]["content"] for item in items + body_of(second)["items"]]
    assert len(set(prompts)) == 6
    assert (first.batch_size, first.sha256 != second.sha256) == (3, True)


def test_repeated_bodies_are_one_buffer(tmp_path: Path) -> None:
    """Memory is clips times size: the same bytes object goes out again and again, under the same hash."""
    made = prepared(tmp_path)
    assert made.bodies.item(0).buffers[0] is made.bodies.item(7).buffers[0]
    assert made.bodies.item(0).sha256 == made.bodies.item(7).sha256


def test_unique_bodies_differ_from_the_first_token_of_the_question(tmp_path: Path) -> None:
    """A number stands before the text; the same seed makes the same bodies, another seed others."""
    made, again, other = (prepared(tmp_path, cache="unique", salt=salt) for salt in ("1", "1", "2"))
    texts = [body_of(made.bodies.item(ordinal))["messages"][0]["content"] for ordinal in (0, 1)]
    assert texts[0] != texts[1] and all(text.startswith("[") and text.endswith("] Hello?") for text in texts)
    hashes = [one.bodies.item(0).sha256 for one in (made, again, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert made.bodies.item(0).sha256 != made.bodies.item(1).sha256


def test_threads_are_used_in_turn(tmp_path: Path) -> None:
    """Two names for any number of requests, and the thread is part of the body's hash."""
    made = prepared(tmp_path, threads=2)
    items = [made.bodies.item(ordinal) for ordinal in range(4)]
    assert [body_of(item)["thread_id"] for item in items] == ["bench-0", "bench-1", "bench-0", "bench-1"]
    assert [item.thread for item in items] == ["bench-0", "bench-1", "bench-0", "bench-1"]
    assert items[0].sha256 == items[2].sha256 != items[1].sha256


def test_usage_with_every_chunk_is_asked_for_by_its_own_key(tmp_path: Path) -> None:
    """vLLM's continuous_usage_stats."""
    body = body_of(prepared(tmp_path, per_chunk_usage=True).bodies.item(0))
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_pictures_go_out_in_turn(tmp_path: Path) -> None:
    """A folder's pictures by name, each as a data: URI before the text."""
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "b.png").write_bytes(b"\x89PNG\r\n\x1a\nb")
    (tmp_path / "clips" / "a.jpg").write_bytes(b"\xff\xd8\xffa")
    made = prepared(tmp_path, media="image", clips="clips", max_pixels=1000)
    assert [made.bodies.item(ordinal).name for ordinal in range(3)] == ["a.jpg", "b.png", "a.jpg"]
    body = body_of(made.bodies.item(1))
    picture, text = body["messages"][0]["content"]
    assert picture["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgpi" and text["text"] == "Hello?"
    assert body["mm_processor_kwargs"] == {"max_pixels": 1000}
    assert sorted(made.files) == ["a.jpg", "b.png"]


def test_what_is_encoded_inside_is_what_would_have_been_before(tmp_path: Path) -> None:
    """The same bytes under the same hash, read anew, with stamps in order."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG1")
    options: dict[str, Any] = {"media": "image", "clips": "a.png", "threads": 2}
    before, inside = prepared(tmp_path, **options), prepared(tmp_path, encode="inside", **options)
    assert (before.bodies.are_encoded_inside, inside.bodies.are_encoded_inside) == (False, True)
    made = inside.bodies.encode(1)
    assert b"".join(made.item.buffers) == b"".join(before.bodies.item(1).buffers)
    assert made.item.sha256 == before.bodies.item(1).sha256 and made.item.thread == "bench-1"
    assert made.sel_ns <= made.enc_ns <= made.ser_ns


def test_the_fingerprint_follows_the_files(tmp_path: Path) -> None:
    """A picture that changed is another workload, under the same name and text."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG1")
    before = prepared(tmp_path, media="image", clips="a.png")
    (tmp_path / "a.png").write_bytes(b"\x89PNG2")
    assert before.fingerprint != prepared(tmp_path, media="image", clips="a.png").fingerprint


def test_a_schema_is_sent_and_held_to(tmp_path: Path) -> None:
    """As response_format, strict; text that is not JSON breaks it."""
    schema = {"type": "object", "required": ["scene"]}
    (tmp_path / "s.json").write_text(json.dumps(schema))
    made = prepared(tmp_path, schema="s.json")
    assert body_of(made.bodies.item(0))["response_format"]["json_schema"]["schema"] == schema == made.schema
    is_valid = validity(schema)
    assert [is_valid(text) for text in ('{"scene": ""}', "{}", "scene", "")] == [True, False, False, False]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"max_tokens": None}, "one of max_tokens"),
        ({"max_completion_tokens": 3}, "one of max_tokens"),
        ({"max_tokens": 0}, "budget is 0"),
        ({"prompt": " "}, "prompt is empty"),
        ({"model": ""}, "model is empty"),
        ({"kind": "realtime"}, "not 'chat'"),
        ({"media": "film"}, "media: invalid enum value"),
        ({"media": "video"}, "clips must name"),
        ({"clips": "x"}, "leave clips out"),
        ({"fps": 2.0}, "belong to films"),
        ({"media": "frames", "clips": "x"}, "say fps or num_frames"),
        ({"media": "video", "clips": "x", "fps": 2.0, "num_frames": 3}, "exclude each other"),
        ({"media": "image", "clips": "x"}, "no .jpg or .jpeg or .png"),
        ({"media": "image", "clips": "x", "cache": "unique"}, "pictures have no variants"),
        ({"cache": "unique", "encode": "inside"}, "before the clock"),
        ({"schema": "none.json"}, "none.json"),
        ({"promt": "x"}, "did you mean 'prompt'"),
        ({"max_tokens": "8"}, "max_tokens: expected int"),
        ({"threads": -1}, "threads"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"top_p": 0.0}, "top_p is 0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_a_workload_that_cannot_be_sent_is_refused(tmp_path: Path, values: dict[str, Any], says: str) -> None:
    """Before anything is sent, with the key and the remedy."""
    with pytest.raises(InvalidRequest, match=says):
        prepared(tmp_path, **values)


@pytest.mark.parametrize("extra", ['model = "other"', "stream = false", "max_tokens = 1", "messages = []", "seed = 1"])
def test_extra_does_not_say_what_the_workload_says(tmp_path: Path, extra: str) -> None:
    """It would win over it, and every report would name the wrong one."""
    path = tmp_path / "w.toml"
    path.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in SMALLEST.items()) + f"extra = {{{extra}}}\n"
    )
    with pytest.raises(InvalidRequest, match=f"extra says {extra.partition(' ')[0]}"):
        prepare(read_workload(path), can_stream=True, salt="0")


def test_what_json_does_not_know_is_refused(tmp_path: Path) -> None:
    """TOML has infinities."""
    path = tmp_path / "w.toml"
    path.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in SMALLEST.items()) + "extra = {x = inf}\n"
    )
    with pytest.raises(InvalidRequest, match="extra"):
        prepare(read_workload(path), can_stream=True, salt="0")
