"""answers.analysis: the default question, and a user's own."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from vision_bench.answers.analysis import AnalysisResult, Question, analysis_schema, default_question, load_question
from vision_bench.errors import InvalidRequest, UnknownName


def test_schema_has_exactly_the_fields_of_the_result() -> None:
    """Four strings, all required, nothing else allowed, each with a limit."""
    names = [field.name for field in dataclasses.fields(AnalysisResult)]
    schema = analysis_schema()
    assert list(schema["properties"]) == schema["required"] == names
    assert schema["additionalProperties"] is False
    assert [schema["properties"][name]["maxLength"] for name in names] == [800, 800, 800, 400]


@pytest.mark.parametrize(("language", "word"), [("ko", "한국어"), ("en", "English")])
def test_prompt_names_every_field_in_its_language(language: str, word: str) -> None:
    """Korean is the default's language; both prompts name the four fields."""
    prompt = default_question(language).prompt
    assert word in prompt
    assert all(field.name in prompt for field in dataclasses.fields(AnalysisResult))


def test_unknown_language_names_the_way_out() -> None:
    """The error says what there is, and that a prompt of one's own is possible."""
    with pytest.raises(UnknownName, match=r"ko or en.*--prompt"):
        default_question("fr")


def test_own_prompt_without_schema_is_free_text(tmp_path: Path) -> None:
    """Nobody's prompt is forced into four fields that it never asked for."""
    file = tmp_path / "p.txt"
    file.write_text("\ufeffWho scores?\n", "utf-8")
    assert load_question(prompt_file=file) == Question("Who scores?", None)


def test_own_schema_is_named_after_its_file(tmp_path: Path) -> None:
    """The name on the wire keeps to letters, digits, _ and -."""
    file = tmp_path / "score board 점수.json"
    file.write_text(json.dumps({"type": "object"}), "utf-8")
    question = load_question(schema_file=file)
    assert (question.schema, question.schema_name) == ({"type": "object"}, "score_board")
    assert question.prompt == default_question().prompt


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "is not JSON"), ("[1]", "holds list"), ('{"type": "strnig"}', "no JSON schema")],
)
def test_bad_schema_files_are_refused_before_anything_is_sent(tmp_path: Path, content: str, says: str) -> None:
    """The message names the file and what is wrong."""
    file = tmp_path / "s.json"
    file.write_text(content)
    with pytest.raises(InvalidRequest, match=f"s.json.*{says}|s.json {says}"):
        load_question(schema_file=file)


@pytest.mark.parametrize("name", ["prompt_file", "schema_file"])
def test_a_file_without_end_is_refused(name: str) -> None:
    """A device is read up to a limit, not for ever."""
    with pytest.raises(InvalidRequest, match="more than"):
        load_question(**{name: Path("/dev/zero")})  # type: ignore[arg-type]


def test_empty_or_absent_prompt_file_is_refused(tmp_path: Path) -> None:
    """An empty prompt would ask the model nothing, a hundred times."""
    with pytest.raises(InvalidRequest, match="cannot read"):
        load_question(prompt_file=tmp_path / "none.txt")
    (tmp_path / "e.txt").write_text(" \n")
    with pytest.raises(InvalidRequest, match="is empty"):
        load_question(prompt_file=tmp_path / "e.txt")


def test_fingerprint_follows_prompt_and_schema() -> None:
    """Same question, same twelve digits; another word or limit, others."""
    question = default_question()
    assert question.fingerprint == default_question().fingerprint
    assert (
        len({question.fingerprint, default_question("en").fingerprint, Question(question.prompt, None).fingerprint})
        == 3
    )
