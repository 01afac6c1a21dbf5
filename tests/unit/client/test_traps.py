"""client.traps: the server's own words, as captured from vLLM, lead to the way out."""

from __future__ import annotations

import pytest

from vision_bench.client.traps import TRAPS, find_trap, with_remedy


@pytest.mark.parametrize(
    ("message", "name", "remedy"),
    [
        ("Video doesn't have audio track with `audio_in_video=True`", "audio_cache", "--mm-processor-cache-gb 0"),
        (
            "Per-request mm_processor_kwargs are disabled by default because they can change multimodal preprocessing "
            "resource usage. (parameter=mm_processor_kwargs)",
            "kwargs_disabled",
            "--trust-request-mm-kwargs",
        ),
        ("Per-request media_io_kwargs are disabled by default", "kwargs_disabled", "--trust-request-mm-kwargs"),
        ("No audio stream found.", "no_audio_stream", "--no-audio"),
        ("The model `nope` does not exist. Valid aliases: qwen.", "unknown_model", "--model"),
        ("Input length (5055) exceeds model's maximum context length (4096).", "too_long", "--fps"),
        ("Unrecognized request argument supplied: media_io_kwargs", "unknown_key", "--dialect"),
        ("Unauthorized", "unauthorized", "--api-key"),
        ("Not Found", "no_batch_route", "/v1"),
    ],
)
def test_known_errors_name_their_remedy(message: str, name: str, remedy: str) -> None:
    """Each trap is known by what the server really says."""
    trap = find_trap(message)
    assert trap is not None and trap.name == name and remedy in trap.remedy
    assert with_remedy(message).startswith(message) and remedy in with_remedy(message)


def test_an_unknown_error_is_left_as_it_is() -> None:
    """No advice is better than wrong advice."""
    assert with_remedy("Could not open video stream") == "Could not open video stream"


def test_names_are_distinct() -> None:
    """A trap is named once."""
    assert len({trap.name for trap in TRAPS}) == len(TRAPS)
