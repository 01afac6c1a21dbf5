"""bench.realtime.workload: what the vectors leave open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.realtime import workload
from vision_bench.bench.realtime.workload import PromptUpdate, Workload, default_workload, load_workload

IMAGE = "https://example.invalid/first.png"


def _file(folder: Path, text: str) -> Path:
    path = folder / "workload.json"
    path.write_text(text, encoding="utf-8")
    return path


def _load(folder: Path, document: dict[str, Any], **overrides: Any) -> Workload:
    file = _file(folder, json.dumps({"image": IMAGE, "num_chunks": 2, **document}))
    return load_workload(file, overrides=overrides)


def test_the_defaults_are_the_published_ones() -> None:
    """832x480 at 16 fps, flow shift 5, seed 42, six warm-up chunks, three latent frames a chunk."""
    made = default_workload(image_reference=IMAGE, num_chunks=16)
    assert (made.width, made.height, made.fps, made.flow_shift, made.seed) == (832, 480, 16, 5.0, 42)
    assert (workload.DEFAULT_WARMUP_CHUNKS, workload.FRAMES_PER_BLOCK, workload.TEMPORAL_COMPRESSION) == (6, 3, 4)
    assert workload.CAMERA_PATTERNS == ("forward", "orbit", "hold")
    assert made.prompt == workload.DEFAULT_PROMPT == "The camera moves slowly forward through the scene."
    assert made.camera_script == [[["w"], ["w"], ["w"]]] * 16


@pytest.mark.parametrize("fps", [16, 16.0, "16"])
def test_a_whole_rate_is_an_int_in_the_message(fps: Any, tmp_path: Path) -> None:
    """However it was written, the payload says 16 and not 16.0."""
    payload = _load(tmp_path, {"fps": fps}).session_start_payload("m")
    assert json.dumps(payload["fps"]) == "16"


def test_a_whole_rate_given_to_the_class_is_an_int_too() -> None:
    """The rule is the workload's and not the loader's."""
    made = default_workload(image_reference=IMAGE, num_chunks=1, fps=24.0)
    assert json.dumps(made.describe()["fps"]) == "24"


def test_a_file_that_is_not_json_is_a_value_error(tmp_path: Path) -> None:
    """json's own error is one."""
    with pytest.raises(ValueError, match="Expecting"):
        load_workload(_file(tmp_path, "{num_chunks: 1}"))


def test_text_is_read_as_utf8_whatever_the_locale(tmp_path: Path) -> None:
    """A Korean prompt arrives as written."""
    file = _file(tmp_path, json.dumps({"image": IMAGE, "num_chunks": 1, "prompt": "조용한 거리"}, ensure_ascii=False))
    assert load_workload(file).prompt == "조용한 거리"


def test_the_resolver_gets_the_files_image_and_its_answer_is_used(tmp_path: Path) -> None:
    """image wins over image_reference when it holds something."""
    asked: list[str] = []

    def resolve(image: str) -> str:
        asked.append(image)
        return f"data:image/png;base64,{image}"

    file = _file(tmp_path, json.dumps({"image": "first.png", "image_reference": "other.png", "num_chunks": 1}))
    assert load_workload(file, image_resolver=resolve).image_reference == "data:image/png;base64,first.png"
    file = _file(tmp_path, json.dumps({"image": "", "image_reference": "other.png", "num_chunks": 1}))
    load_workload(file, image_resolver=resolve)
    assert asked == ["first.png", "other.png"]


def test_a_flag_that_was_given_wins_and_one_that_was_not_does_not(tmp_path: Path) -> None:
    """None is 'not given'; 0 and empty text are given."""
    document = {"seed": 7, "fps": 12, "camera_pattern": "hold", "negative_prompt": "rain"}
    loaded = _load(tmp_path, document, seed=0, fps=None, camera_pattern="orbit", negative_prompt="")
    assert (loaded.seed, loaded.fps, loaded.negative_prompt) == (0, 12, "")
    assert loaded.camera_script == workload.build_camera_script(2, "orbit")


@pytest.mark.parametrize("key", ["width", "height", "fps", "seed", "flow_shift", "prompt"])
def test_null_is_no_value(key: str, tmp_path: Path) -> None:
    """A key that is null is refused by name, whichever it is."""
    with pytest.raises(ValueError, match=key):
        _load(tmp_path, {key: None})


def test_a_null_prompt_in_an_update_is_refused_too(tmp_path: Path) -> None:
    """The same slip in another place."""
    with pytest.raises(ValueError, match=r"prompt_updates\[0\].prompt is null"):
        _load(tmp_path, {"prompt_updates": [{"after_chunk": 0, "prompt": None}]})


@pytest.mark.parametrize("updates", [5, {"after_chunk": 0}, ["rain"]])
def test_updates_are_a_list_of_objects(updates: Any, tmp_path: Path) -> None:
    """Anything else is named with its kind."""
    with pytest.raises(ValueError, match=r"prompt_updates.* is (int|dict|str)"):
        _load(tmp_path, {"prompt_updates": updates})


@pytest.mark.parametrize("fps", [0, -1, float("nan"), float("inf")])
def test_a_rate_must_be_one_that_can_be_played(fps: float) -> None:
    """Not above 0, not a number and without end are refused alike."""
    with pytest.raises(ValueError, match="fps"):
        default_workload(image_reference=IMAGE, num_chunks=1, fps=fps)


def test_extra_params_lie_over_ours() -> None:
    """As published: they win, also over the script, and nobody checks that it still fits."""
    made = Workload(
        prompt="p",
        image_reference=IMAGE,
        camera_script=[[["w"], [], []]],
        extra_params={"flow_shift": 3.0, "camera_action_script": "theirs", "steps": 4},
    )
    extra = made.session_start_payload("m")["extra_params"]
    assert extra == {"flow_shift": 3.0, "camera_action_script": "theirs", "steps": 4}
    assert made.num_chunks == 1


def test_the_start_message_names_no_format_and_no_steps() -> None:
    """The server's defaults are what is measured."""
    payload = default_workload(image_reference=IMAGE, num_chunks=1).session_start_payload("m")
    assert not {"format", "num_inference_steps", "guidance_scale", "negative_prompt"} & set(payload)


def test_an_update_after_the_last_chunk_is_refused_with_the_last_chunk() -> None:
    """The message says which is the last."""
    with pytest.raises(ValueError, match="last chunk is 0"):
        Workload(
            prompt="p", image_reference=IMAGE, camera_script=[[[], [], []]], prompt_updates=(PromptUpdate(1, "night"),)
        )


def test_a_blank_update_is_refused() -> None:
    """White space is no prompt."""
    with pytest.raises(ValueError, match="blank"):
        PromptUpdate(0, " \n")
