"""The choice of an envelope, and when it no longer holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.choice import choice_path, in_words, make_choice, model_facts, prints_of, read_choice, standing
from vision_bench.bench.rundir import write_json
from vision_bench.errors import InvalidRequest

VALUES: dict[str, Any] = {
    "name": "w", "kind": "chat", "model": "qwen", "prompt": "What?", "system": None, "schema": None, "clips": "c",
    "height": 240, "fps": 2.0, "num_frames": None, "seconds": None, "max_pixels": None, "use_audio": False,
    "control": None, "temperature": 0.0, "region": None,
}  # fmt: skip
FILES = {"a.mp4": "1", "labels.jsonl": "2"}
SERVER = {"model": {"id": "qwen", "max_model_len": 4096, "root_sha256": "abc"}}
ROW = {"model": "qwen", "envelope": {"height": 240, "fps": 2.0}, "words": "240 lines, 2 fps"}


def facts(*, files: Any = None, **values: Any) -> dict[str, Any]:
    return {"values": VALUES | values, "files": files or FILES}


def choice(*chosen: Any) -> dict[str, Any]:
    study = {"workload": "w", "threshold": 0.9, "made_at": "2026-01-01"}
    return make_choice(study, chosen, prints_of(facts()), {"qwen": model_facts(SERVER)})


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ({}, []),
        ({"height": 480, "fps": None, "num_frames": 4, "region": "x"}, []),  # the envelope is what was compared
        ({"prompt": "Where?"}, ["prompt"]),
        ({"system": "Be brief."}, ["prompt"]),
        ({"temperature": 1.0}, ["workload"]),
        ({"files": FILES | {"a.mp4": "9"}}, ["workload"]),
        ({"files": FILES | {"labels.jsonl": "9"}, "prompt": "Where?"}, ["workload", "prompt"]),
        ({"model": "other"}, ["served model"]),
    ],
)
def test_a_choice_is_stale_when_what_it_rests_on_changed(changed: dict[str, Any], stale: list[str]) -> None:
    """Clips, labels and sampling; the prompt; the model. Not the envelope itself."""
    assert standing(choice(ROW), facts(**changed), SERVER)["stale"] == stale


def test_a_prompts_schema_is_part_of_the_prompt() -> None:
    """Another file under the same name changes what is asked."""
    then, now = (facts(schema="s/answer.json", files=FILES | {"answer.json": sha}) for sha in ("1", "2"))
    first, second = prints_of(then), prints_of(now)
    assert first["prompt"] != second["prompt"] and first["workload"] == second["workload"]


def test_another_model_under_the_same_name_is_seen_where_the_server_tells() -> None:
    """A gateway tells less: what only one of them tells proves nothing."""
    kept = choice(ROW)
    assert standing(kept, facts(), {"model": {"id": "qwen", "root_sha256": "xyz"}})["stale"] == ["served model"]
    assert standing(kept, facts(), {"model": {"id": "qwen", "max_model_len": 4096}})["stale"] == []
    assert standing(kept, facts(), {"models": None})["stale"] == []


def test_a_workload_uses_the_choice_when_its_envelope_is_the_chosen_one() -> None:
    """Every axis counts, and a control is no use of it."""
    assert standing(choice(ROW), facts(), SERVER)["is_used"]
    assert not standing(choice(ROW), facts(height=480), SERVER)["is_used"]
    assert not standing(choice(ROW), facts(num_frames=3), SERVER)["is_used"]
    assert not standing(choice(ROW), facts(control="blackout"), SERVER)["is_used"]
    assert standing(choice(), facts(), SERVER) | {"made_at": ""} == {
        "threshold": 0.9, "made_at": "", "stale": [], "is_used": False, "chosen": None,
    }  # fmt: skip


def test_one_line_for_a_person() -> None:
    """STALE in capitals, and what to do."""
    line = in_words(standing(choice(ROW), facts(prompt="Where?"), SERVER))
    assert line.startswith("Envelope STALE (prompt changed since 2026-01-01)") and line.endswith("run the study again")
    assert in_words(standing(choice(ROW), facts(), SERVER)) == (
        "Envelope chosen: 240 lines, 2 fps, which this workload uses (threshold 0.9, 2026-01-01)"
    )
    assert "no envelope was good enough" in in_words(standing(choice(), facts(), SERVER))


def test_the_file_lies_beside_its_workload(tmp_path: Path) -> None:
    """None is none; what is no choice is named with the remedy."""
    path = choice_path(tmp_path / "chat.toml")
    assert path == tmp_path / "chat.envelope.json" and read_choice(path) is None
    write_json(path, choice(ROW))
    assert read_choice(path) == choice(ROW)
    for content in ("{", "[]", '{"schema": 9, "chosen": []}', '{"schema": 1, "chosen": []}'):
        path.write_text(content)
        with pytest.raises(InvalidRequest, match="delete it"):
            read_choice(path)
