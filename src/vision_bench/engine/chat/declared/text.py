"""The words of a declared answer: valid against the schema, in the prompt's language, and honest about themselves."""

from __future__ import annotations

import json
from itertools import pairwise

from vision_bench.engine.chat.model import BadChatRequest, ChatRequest, pieces
from vision_bench.engine.chat.regex_sample import UnsupportedPattern, sample_of
from vision_bench.engine.chat.schema_fill import fill

ENGLISH = "This is a declared answer: its timing is real, its words are not, and nothing was seen or heard."
KOREAN = "이것은 선언된 답변입니다. 걸린 시간은 참이지만 내용은 꾸며 낸 것이며, 본 것도 들은 것도 없습니다."


def answer_tokens(request: ChatRequest, count: int | None) -> tuple[str, ...]:
    """The answer cut into tokens.

    Args:
        request: its form (schema, choices, …) and language decide the text.
        count: exactly this many tokens; None cuts as a tokenizer roughly would.

    Raises:
        BadChatRequest: a regex that no sample can be written for.
    """
    text, is_free = _text(request)
    if count is None:
        return tuple(pieces(text))
    if is_free:
        # Free text grows to its length; a pieces() of one sentence is about 25 tokens.
        while len(found := pieces(text)) < count:
            text = f"{text} {text}"
        return tuple(found[:count])
    return tuple(_cut_evenly(text, count))


def _text(request: ChatRequest) -> tuple[str, bool]:
    sentence = KOREAN if _is_korean(request.prompt or request.system) else ENGLISH
    if request.choices:
        return request.choices[0], False
    if request.regex is not None:
        try:
            return sample_of(request.regex) or " ", False
        except UnsupportedPattern as error:
            raise BadChatRequest(f"Grammar error: {error}") from None
    if request.schema is not None:
        return json.dumps(fill(request.schema, sentence), ensure_ascii=False, separators=(",", ":")), False
    if request.json_object:
        return json.dumps({"answer": sentence}, ensure_ascii=False), False
    return sentence, True


def _is_korean(text: str) -> bool:
    return any("\uac00" <= char <= "\ud7a3" for char in text)


def _cut_evenly(text: str, count: int) -> list[str]:
    """``count`` pieces whose lengths differ by one at most; blanks follow a text too short, as JSON allows."""
    if len(text) < count:
        text = text.ljust(count)
    bounds = [len(text) * step // count for step in range(count + 1)]
    return [text[start:end] for start, end in pairwise(bounds)]
