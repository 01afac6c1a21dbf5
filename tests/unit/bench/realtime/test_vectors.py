"""The published module's own results, every one of them, and the three that are wrong there and right here."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.realtime import metrics, workload
from vision_bench.bench.realtime.metrics import ChunkRecord
from vision_bench.bench.realtime.workload import DEFAULT_PROMPT, PromptUpdate, Workload, build_camera_script

VECTORS_FILE = Path(__file__).parents[3] / "golden" / "realtime_vectors.json"
VECTORS: dict[str, dict[str, Any]] = {
    vector["id"]: vector for vector in json.loads(VECTORS_FILE.read_text(encoding="utf-8"))["functions"]
}
TOLERANCE = 1e-9
OURS = {"file-fractional-fps", "file-null-prompt", "metrics-fps-zero-with-slo"}
"""Where the published module is wrong; each has its test below."""


def _records(given: list[dict[str, Any]]) -> list[ChunkRecord]:
    return [ChunkRecord(**fields) for fields in given]


def _workload(given: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {**given["base"], **{key: value for key, value in given.items() if key != "base"}}
    if fields["camera_script"] == "orbit x3":
        fields["camera_script"] = build_camera_script(3, "orbit")
    fields["prompt_updates"] = tuple(PromptUpdate(**update) for update in fields.get("prompt_updates", ()))
    made = Workload(**fields)
    return {
        "describe": made.describe(),
        "session_start_payload": made.session_start_payload("MODEL"),
        "update_payloads": [update.to_payload() for update in made.prompt_updates],
    }


def _load(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    file = folder / "workload.json"
    file.write_text(json.dumps(given["document"]), encoding="utf-8")
    loaded = workload.load_workload(file, overrides=given["overrides"])
    prompt = "<DEFAULT_PROMPT>" if loaded.prompt == DEFAULT_PROMPT else loaded.prompt
    return {
        "describe": loaded.describe(),
        "prompt": prompt,
        "image_reference": loaded.image_reference,
        "negative_prompt": loaded.negative_prompt,
        "camera_script": loaded.camera_script,
        "extra_params": loaded.extra_params,
    }


def _each(function: Callable[[Any], Any], given: Mapping[str, Any]) -> list[Any]:
    (values,) = given.values()
    return [function(value) for value in values]


def _call(vector: Mapping[str, Any], folder: Path) -> Any:
    """The vector's function, called as the file's conventions say."""
    given = dict(vector["input"])
    match vector["function"]:
        case "num_frames_for_chunks" | "chunks_for_num_frames" | "pixel_frames_in_chunk" as name:
            return _each(getattr(workload, name), given)
        case "steady_chunk_deadline_ms":
            return _each(metrics.steady_chunk_deadline_ms, given)
        case "build_camera_script":
            return build_camera_script(**given)
        case "Workload":
            return _workload(given)
        case "load_workload":
            return _load(given, folder)
        case "simulate_playback":
            return metrics.simulate_playback(_records(given.pop("records")), **given).to_dict()
        case "compute_metrics":
            return metrics.compute_metrics(_records(given.pop("records")), **given)
        case "percentile" | "aggregate_metrics" as name:
            return getattr(metrics, name)(**given)
        case other:
            raise AssertionError(f"no caller for {other}")


def _differences(place: str, got: Any, expected: Any) -> list[str]:
    if isinstance(expected, Mapping):
        if set(got) != set(expected):
            return [f"{place}: keys {sorted(got)} instead of {sorted(expected)}"]
        return [line for key in expected for line in _differences(f"{place}.{key}", got[key], expected[key])]
    if isinstance(expected, list):
        if len(got) != len(expected):
            return [f"{place}: {len(got)} entries instead of {len(expected)}"]
        pairs = zip(got, expected, strict=True)
        return [line for index, pair in enumerate(pairs) for line in _differences(f"{place}[{index}]", *pair)]
    if isinstance(expected, float):
        return [] if got == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE) else [f"{place}: {got}, {expected}"]
    return [] if (got, type(got)) == (expected, type(expected)) else [f"{place}: {got!r} instead of {expected!r}"]


@pytest.mark.parametrize("name", sorted(set(VECTORS) - OURS))
def test_the_published_results_are_ours(name: str, tmp_path: Path) -> None:
    """Same value to 1e-9, same keys, whole numbers whole; or the same kind of error."""
    vector = VECTORS[name]
    if "error" in vector:
        with pytest.raises(getattr(builtins, vector["error"]["type"])):
            _call(vector, tmp_path)
    else:
        assert _differences(name, _call(vector, tmp_path), vector["expected"]) == []


def test_all_vectors_are_there() -> None:
    """Sixty results, the exceptions among them: none is lost by renaming."""
    assert len(VECTORS) == 60
    assert set(VECTORS) > OURS


def test_a_fractional_fps_keeps_its_fraction(tmp_path: Path) -> None:
    """29.97 stays 29.97 where the published loader makes 29 of it; the video's length follows."""
    vector = VECTORS["file-fractional-fps"]
    loaded = _load(vector["input"], tmp_path)
    assert loaded["describe"]["fps"] == 29.97
    assert loaded["describe"]["video_seconds"] == pytest.approx(9 / 29.97, rel=TOLERANCE)
    rest = {**vector["expected"], "describe": {**vector["expected"]["describe"], **{"fps": 0, "video_seconds": 0}}}
    assert {**loaded, "describe": {**loaded["describe"], "fps": 0, "video_seconds": 0}} == rest


def test_a_null_prompt_is_an_error(tmp_path: Path) -> None:
    """The published loader sends the word None."""
    with pytest.raises(ValueError, match="prompt is null"):
        _call(VECTORS["file-null-prompt"], tmp_path)


def test_a_rate_of_zero_is_an_error_with_a_deadline_too(tmp_path: Path) -> None:
    """The published function divides by it when slo_ms is given."""
    with pytest.raises(ValueError, match="fps is 0"):
        _call(VECTORS["metrics-fps-zero-with-slo"], tmp_path)
