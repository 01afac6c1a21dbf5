"""answers.validate: an answer becomes a result or a failure with a name."""

from __future__ import annotations

import json

import pytest

from vision_bench.answers.analysis import Question, default_question
from vision_bench.answers.validate import scripts_of, validate
from vision_bench.wire.chat import Reply

ANSWER = {"scene": "야구장", "speech": "해설", "on_screen_text": "SK 3", "summary": "투수가 던진다."}
QUESTION = default_question("ko")
FREE = Question("이 영상을 설명해 주세요.", None)


def stop(text: str | None) -> Reply:
    return Reply(text, finish_reason="stop")


def test_a_good_answer_is_parsed_and_needs_no_raw_text() -> None:
    """The result says it all."""
    verdict = validate(stop(json.dumps(ANSWER, ensure_ascii=False)), QUESTION)
    assert (verdict.outcome, verdict.result, verdict.raw, verdict.error) == ("ok", ANSWER, None, None)
    assert verdict.warnings == ()


def test_length_comes_before_invalid_json() -> None:
    """JSON cut by max_tokens is named after its cause, and the text is kept."""
    verdict = validate(Reply('{"scene": "야구', finish_reason="length", usage={"completion_tokens": 1024}), QUESTION)
    assert (verdict.outcome, verdict.result, verdict.raw) == ("length", None, '{"scene": "야구')
    assert "1024" in (verdict.error or "") and "--max-tokens" in (verdict.error or "")


@pytest.mark.parametrize(
    "echo", ["assistant>\n", "assistant\n", "assistant> \n", "assistant", "<|im_start|>assistant\n"]
)
def test_echoed_role_fails_a_schema_answer_even_before_good_json(echo: str) -> None:
    """What strict decoding promised did not hold: the answer is not repaired in silence."""
    text = echo + json.dumps(ANSWER)
    verdict = validate(stop(text), QUESTION)
    assert (verdict.outcome, verdict.raw) == ("echo", text)


@pytest.mark.parametrize("echo", ["assistant>\n", "assistant\n"])
def test_echoed_role_is_a_warning_in_free_text(echo: str) -> None:
    """The two captures of the original experiment: text kept without the echo, raw kept with it."""
    verdict = validate(stop(echo + "이 영상은 야구 경기입니다."), FREE)
    assert (verdict.outcome, verdict.warnings) == ("ok", ("assistant_echo",))
    assert verdict.result == {"text": "이 영상은 야구 경기입니다."}
    assert verdict.raw == echo + "이 영상은 야구 경기입니다."


def test_the_word_assistant_in_a_sentence_is_no_echo() -> None:
    """An assistant referee may open an answer."""
    verdict = validate(stop("Assistant referee raises the flag.\nPlay stops."), FREE)
    assert verdict.warnings == () and verdict.raw is None


@pytest.mark.parametrize("text", ["not json", '{"scene": ', '```json\n{"scene": ""}\n```', '{"scene": NaN}'])
def test_what_is_not_json_keeps_its_text(text: str) -> None:
    """Fenced JSON and NaN are not JSON either."""
    verdict = validate(stop(text), QUESTION)
    assert (verdict.outcome, verdict.result, verdict.raw) == ("invalid_json", None, text)


def test_every_missing_field_is_named() -> None:
    """Not only the first one."""
    verdict = validate(stop('{"scene": "a", "summary": "b"}'), QUESTION)
    assert (verdict.outcome, verdict.error) == ("missing_field", "missing: speech, on_screen_text")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ANSWER | {"scene": 7}, "scene: 7 is not of type 'string'"),
        (ANSWER | {"summary": "가" * 401}, "summary: "),
        (ANSWER | {"mood": "x"}, "the answer: Additional properties"),
        ([ANSWER], "the answer: "),
    ],
)
def test_other_breaches_name_the_place(answer: object, says: str) -> None:
    """Wrong type, too long, a field too many, no object."""
    verdict = validate(stop(json.dumps(answer, ensure_ascii=False)), QUESTION)
    assert verdict.outcome == "schema_mismatch" and says in (verdict.error or "")
    assert len(verdict.error or "") < 300


def test_nested_field_of_an_own_schema_is_named_with_its_path() -> None:
    """A user's own schema is held to the same rules."""
    schema = {"type": "object", "properties": {"score": {"type": "object", "required": ["home", "away"]}}}
    verdict = validate(stop('{"score": {"home": 1}}'), Question("Score?", schema, "score"))
    assert (verdict.outcome, verdict.error) == ("missing_field", "missing: score.away")


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_nothing_is_called_empty(text: str | None) -> None:
    """Empty output, seen in the original experiment, is neither JSON nor success."""
    assert validate(stop(text), QUESTION).outcome == "empty"
    assert validate(stop(text), FREE).outcome == "empty"


def test_letters_of_other_scripts_warn_with_an_example() -> None:
    """Degenerate output shows itself by letters that neither the broadcast nor the prompt uses."""
    verdict = validate(stop("투수가 기을 поз던진다"), FREE)
    assert verdict.outcome == "ok"
    (warning,) = verdict.warnings
    assert warning.startswith("unexpected_script: ") and "CYRILLIC п" in warning


@pytest.mark.parametrize(
    "text", ["한글 ABC é 12 ①②", "３점 ＡＢＣ", "5㎏ 25℃ 10µm 3Ω ½", "ㅋㅋㅋ — “인용” 😀", "가\u2028나"]
)
def test_what_korean_broadcasts_hold_does_not_warn(text: str) -> None:
    """Latin with accents, digits, units, full-width forms, loose jamo, quotes and emoji are expected."""
    assert validate(stop(text), FREE).warnings == ()


def test_scripts_of_an_own_prompt_are_expected() -> None:
    """A question in Japanese may be answered in Japanese."""
    question = Question("この映像を説明してください。ニュース", None)
    assert validate(stop("ニュースです。映像"), question).warnings == ()


def test_scripts_are_named_by_unicode() -> None:
    """Each script with the first letter found; marks and digits belong to none."""
    assert scripts_of("aя漢あ9!") == {"LATIN": "a", "CYRILLIC": "я", "CJK": "漢", "HIRAGANA": "あ"}


@pytest.mark.parametrize("reason", ["abort", "error", "content_filter", "repetition"])
@pytest.mark.parametrize("question", [QUESTION, FREE])
def test_an_answer_that_the_server_ended_early_is_no_answer(reason: str, question: Question) -> None:
    """However whole the text looks: vLLM writes `abort` when it is stopped in mid-answer."""
    text = json.dumps(ANSWER, ensure_ascii=False)
    verdict = validate(Reply(text, finish_reason=reason), question)
    assert (verdict.outcome, verdict.result, verdict.raw) == ("aborted", None, text)
    assert reason in (verdict.error or "")


@pytest.mark.parametrize("reason", ["stop", "tool_calls", None])
def test_an_answer_that_ended_by_itself_is_read(reason: str | None) -> None:
    """Servers that say nothing of the reason are believed."""
    assert validate(Reply(json.dumps(ANSWER), finish_reason=reason), QUESTION).outcome == "ok"
