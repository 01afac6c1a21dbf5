"""What the baseline engine measured, read back from its answer's fixed grammar.

``[measured: cuts 1; black_seconds 2.3; shapes blue=2 red=3; …]`` stands at the end of a field, in the same letters in
every language; texts that were read stand in straight double quotes in ``on_screen_text``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vision_bench.media.broadcast.wording import latin_words

LINE = re.compile(r"\[measured: ([^\]]*)\]")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
QUOTED = re.compile(r'"([^"]*)"')


def read_measured(answer: Mapping[str, str]) -> dict[str, Any]:
    """Fact name to number, or to ``{colour: count}``; empty for an answer without the line.

    ``latin_text`` is the different Latin words and numbers of the texts that were read.
    """
    line = next((found[1] for text in answer.values() if (found := LINE.search(text))), None)
    if line is None:
        return {}
    measured: dict[str, Any] = {}
    for item in line.split("; "):
        name, _, value = item.partition(" ")
        measured[name] = _value(value)
    read = " ".join(QUOTED.findall(answer.get("on_screen_text", "")))
    return {**measured, "latin_text": sorted(set(latin_words(read)))}


def _value(written: str) -> Any:
    if NUMBER.fullmatch(written):
        return float(written) if "." in written else int(written)
    if written == "none":
        return {}
    pairs = [item.partition("=") for item in written.split(" ")]
    return {name: int(count) for name, _, count in pairs if count.isdigit()}
