"""A whole analysis against labels."""

from __future__ import annotations

from typing import Any

from vision_bench.answers.scorecard import Row, score_results


def _window(clip: str, beeps: int) -> dict[str, Any]:
    return {
        "clip": clip,
        "speech": [],
        "audio_only": [{"fact": "years", "value": 3, "accept": ["3년"]}],
        "video_only": [],
        "measurable": {
            "audio": {"beeps": {"value": beeps, "tolerance": 0}},
            "video": {"flashes": {"value": 1, "tolerance": 0, "needs_fps": 12}},
        },
    }


LABELS = {"windows": [_window("0001_0000-0006", 1), _window("0002_0006-0012", 2)]}


def _line(clip: str, summary: str | None, **more: Any) -> dict[str, Any]:
    return {"clip": f"data/{clip}.mp4", "result": None if summary is None else {"summary": summary}, **more}


def test_a_measuring_engine_is_scored_by_what_it_measured() -> None:
    """One of two windows right is 0.5 of 2; flashes are not asked at 2 frames a second."""
    lines = [
        _line("0001_0000-0006", "[measured: beeps 1]", fps=2.0),
        _line("0002_0006-0012", "[measured: beeps 1]", fps=2.0),
    ]
    card = score_results(LABELS, lines)
    assert card.rows == (Row("beeps", "numeric", 0.5, 2),)
    assert (card.windows, card.answered) == (2, 2)


def test_a_language_model_is_scored_by_what_it_says() -> None:
    """Facts by contains; error rates have no row where nothing was to be heard."""
    lines = [_line("0001_0000-0006", "3년을 기다렸다"), _line("0002_0006-0012", "기다렸다")]
    assert score_results(LABELS, lines).rows == (Row("audio_only.years", "contains", 0.5, 2),)


def test_a_clip_without_a_good_answer_counts_as_wrong() -> None:
    """A failed line and a missing one lower the mean, and the card says how many were answered."""
    lines = [_line("0001_0000-0006", "[measured: beeps 1]"), _line("0002_0006-0012", None)]
    card = score_results(LABELS, lines, fps=2.0)
    assert card.rows == (Row("beeps", "numeric", 0.5, 2),)
    assert card.answered == 1


def test_the_last_good_line_of_a_clip_counts() -> None:
    """A second run appends: its answer replaces the first's, a later failure does not."""
    lines = [
        _line("0001_0000-0006", "[measured: beeps 0]", fps=2.0),
        _line("0001_0000-0006", "[measured: beeps 1]", fps=2.0),
        _line("0001_0000-0006", None, fps=2.0),
        _line("0002_0006-0012", "[measured: beeps 2]", fps=2.0),
    ]
    assert score_results(LABELS, lines).rows == (Row("beeps", "numeric", 1.0, 2),)


def test_a_card_as_json_holds_no_answer() -> None:
    """Counts and means only, so that it may be committed."""
    card = score_results(LABELS, [_line("0001_0000-0006", "secret words")])
    assert "secret" not in str(card.as_json())
    assert card.as_json()["rows"][0] == {"fact": "audio_only.years", "method": "contains", "mean": 0.0, "count": 2}
