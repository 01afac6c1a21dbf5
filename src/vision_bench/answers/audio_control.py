"""Is the sound used? One window asked three ways: as it is, with a black picture, and with the sound off.

An answer of 200 proves nothing: servers have taken the flag and never passed the sound on. A model that hears must
tell the blackout clip's spoken facts and must not tell them of the muted one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from vision_bench.answers.scoring import contains, whole_text, within

WINDOW_SECONDS = 6.0
MUTED_READING: dict[str, float] = {"speech_seconds": 0.0, "silent_seconds": WINDOW_SECONDS, "beeps": 0}
"""What a perceiver truly measures with the sound off: no proof of hearing."""


class Answer(NamedTuple):
    """What came back for one version of the clip."""

    fields: Mapping[str, str]
    """The answer's text, by field."""
    measured: Mapping[str, Any] = MappingProxyType({})
    """What it says it measured, by fact; empty for a model that measures nothing."""


@dataclass(frozen=True, slots=True)
class ControlVerdict:
    """Which facts each answer holds, and why the control fails. It passes when there is no reason against it."""

    heard_normal: tuple[str, ...]
    heard_blackout: tuple[str, ...]
    heard_muted: tuple[str, ...]
    seen_blackout: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons


def audio_control(window: Mapping[str, Any], *, normal: Answer, blackout: Answer, muted: Answer) -> ControlVerdict:
    """Hold three answers to the facts that only sound, and only the picture, can give.

    Args:
        window: one entry of a label file's ``windows``.
    """
    heard = {name: heard_facts(window, answer) for name, answer in _named(normal, blackout, muted)}
    seen = seen_facts(window, blackout)
    reasons = []
    listening = [fact["fact"] for fact in window["audio_only"]] + _proving(window)
    if not listening:
        reasons.append(f"window {window['clip']} holds nothing that only sound can tell; choose another")
    if not heard["normal"]:
        reasons.append(f"the normal answer holds none of the heard facts: {', '.join(listening)}")
    if not heard["blackout"]:
        reasons.append("the blackout answer holds no heard fact: the sound does not reach the model")
    if heard["muted"]:
        reasons.append(f"the muted answer still tells {', '.join(heard['muted'])}: it does not come from the sound")
    if seen:
        reasons.append(f"the blackout answer tells {', '.join(seen)}, which a black picture cannot show")
    return ControlVerdict(heard["normal"], heard["blackout"], heard["muted"], seen, tuple(reasons))


def _named(normal: Answer, blackout: Answer, muted: Answer) -> list[tuple[str, Answer]]:
    return [("normal", normal), ("blackout", blackout), ("muted", muted)]


def heard_facts(window: Mapping[str, Any], answer: Answer) -> tuple[str, ...]:
    """The facts of the window that only sound can give and that the answer holds."""
    text = whole_text(answer.fields)
    said = [fact["fact"] for fact in window["audio_only"] if contains(text, fact["accept"])]
    truths = window["measurable"]["audio"]
    measured = [
        name
        for name in _proving(window)
        if within(truths[name]["value"], answer.measured.get(name), truths[name]["tolerance"])
    ]
    return (*said, *measured)


def seen_facts(window: Mapping[str, Any], answer: Answer) -> tuple[str, ...]:
    """The facts of the window that only the picture can give and that the answer holds."""
    text = whole_text(answer.fields)
    said = [fact["fact"] for fact in window["video_only"] if contains(text, fact["accept"])]
    truths = window["measurable"]["video"]
    counted = [
        name
        for name in ("flashes", "shapes", "latin_text")
        if truths.get(name, {}).get("value") and truths[name]["value"] == answer.measured.get(name)
    ]
    return (*said, *counted)


def _proving(window: Mapping[str, Any]) -> list[str]:
    """Measurable sounds whose true value is far enough from the muted clip's to prove hearing."""
    return [
        name
        for name, truth in window["measurable"]["audio"].items()
        if not within(truth["value"], MUTED_READING[name], 2 * truth["tolerance"])
    ]
