"""engine.realtime.late: each late refusal, and the request that has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vision_bench.engine.realtime.late import Deployment, late_error
from vision_bench.wire.realtime.start import read_start

IMAGE = {"image_url": "data:image/png;base64,Zm9v"}
SCRIPT = [[["w"], [], ["A", "d"]]] * 3
GIVEN: dict[str, Any] = {
    "type": "session.start",
    "prompt": "p",
    "image_reference": IMAGE,
    "width": 832,
    "height": 480,
    "num_frames": 33,
}


def error(deployment: Deployment | None = None, **changes: Any) -> str | None:
    """What is wrong with the request with some fields other."""
    start = read_start(json.dumps({**GIVEN, **changes}), model="m")
    return late_error(start, deployment or Deployment())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_inference_steps": 4},
        {"extra_params": {"flow_shift": 5, "camera_action_script": SCRIPT}},
        {"extra_params": {"preencode_mp4": False, "action_path": None}},
        {"image_reference": {"image_url": "https://example.invalid/a.png"}},
        {"flow_shift": 0.1},
        {"width": None, "height": None, "size": "832x480"},
    ],
)
def test_a_request_that_fits_passes(changes: dict[str, Any]) -> None:
    """With and without a script, steps, a flow shift."""
    assert error(**changes) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image_reference": None}, "image_reference is required"),
        ({"image_reference": [IMAGE, IMAGE]}, "exactly one image_reference is supported, got 2"),
        ({"image_reference": {"file_id": "f"}}, "400: image_reference.file_id"),
        ({"image_reference": {"image_url": "ftp://x"}}, "400: image_reference.image_url must be"),
        ({"image_reference": {"image_url": "data:text/plain,x"}}, "400: image_reference.image_url must be"),
        ({"prompt": " \n"}, "prompt must contain non-whitespace"),
        ({"width": None}, "width and height are missing; this deployment serves 832x480"),
        ({"width": 831}, "multiples of 16, got 831x480"),
        ({"width": 848}, "at most 399360 pixels, got 848x480"),
        ({"width": 480, "height": 832}, "this deployment serves 832x480, got 480x832"),
        ({"num_frames": None}, "9 + 12 k, got None"),
        ({"num_frames": 34}, "9 + 12 k, got 34"),
        ({"num_frames": 8}, "9 + 12 k, got 8"),
        ({"num_inference_steps": 8}, "num_inference_steps must be 4, got 8"),
        ({"flow_shift": 0}, "flow_shift must be positive and finite, got 0"),
        ({"extra_params": {"flow_shift": "5"}}, "flow_shift must be positive and finite, got '5'"),
        ({"extra_params": {"flow_shift": True}}, "flow_shift must be positive and finite, got True"),
        ({"extra_params": {"flow_shift": float("inf")}}, "flow_shift must be positive and finite, got inf"),
        ({"extra_params": {"preencode_mp4": True}}, "preencode_mp4 is not supported"),
        ({"extra_params": {"action_path": "a"}}, "action_path needs a trusted root"),
        ({"extra_params": {"action_path": "a", "camera_action_script": SCRIPT}}, "exclude each other"),
        ({"extra_params": {"camera_action_script": SCRIPT[:2]}}, "has 2 chunks, the request generates 3"),
        ({"extra_params": {"camera_action_script": []}}, "camera_action_script is empty"),
        ({"extra_params": {"camera_action_script": "www"}}, "camera_action_script is str"),
        ({"extra_params": {"camera_action_script": [[["w"]]] * 3}}, r"camera_action_script[0] has 1 action lists"),
        ({"extra_params": {"camera_action_script": [[["zz"], [], []]] * 3}}, "Unknown camera action 'zz'"),
    ],
)
def test_what_does_not_fit_is_told_after_the_session_began(changes: dict[str, Any], says: str) -> None:
    """One rule each; the value that was sent stands in the text."""
    found = error(**changes)
    assert found is not None
    assert says in found


def test_another_deployment_serves_another_size() -> None:
    """The geometry is the deployment's and not the model's."""
    small = Deployment(64, 48)
    assert error(small, width=64, height=48) is None
    assert "serves 64x48" in (error(small) or "")
