"""What is asked of a clip: the four-field analysis by default, or a user's own prompt and schema."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from vision_bench.answers import schema as schemas
from vision_bench.errors import InvalidRequest, UnknownName
from vision_bench.wire.shapes import parse_json

Json = dict[str, Any]
Language = Literal["ko", "en"]

SCHEMA_NAME = "clip_analysis"

MAX_FILE_BYTES = 1024 * 1024
"""Of a prompt or schema file: a clip, or a device without an end, is no question."""

PROMPTS: dict[Language, str] = {
    "ko": (
        "이 영상 클립의 화면과 소리를 함께 분석해 주세요. 보이고 들리는 것만 한국어로 적고, 짐작하지 마세요.\n"
        "- scene: 화면에 보이는 장소, 인물, 사물과 움직임. 화면이 검거나 멈춰 있으면 그렇다고 적습니다.\n"
        "- speech: 들리는 말의 내용. 말이 없으면 들리는 소리를, 소리도 없으면 없다고 적습니다.\n"
        "- on_screen_text: 화면에 적힌 글자를 그대로. 없으면 없다고 적습니다.\n"
        "- summary: 화면과 소리를 합친 한두 문장의 요약.\n"
        "위 네 항목을 가진 JSON 객체 하나로만 답해 주세요."
    ),
    "en": (
        "Analyze the picture and the sound of this video clip together. Write only what is seen and heard, in English; "
        "do not guess.\n"
        "- scene: the place, people, objects and movement in the picture. Say so if it is black or frozen.\n"
        "- speech: what is said. Without speech, describe the sound; without sound, say that there is none.\n"
        "- on_screen_text: the text in the picture, word for word. Say so if there is none.\n"
        "- summary: one or two sentences that put picture and sound together.\n"
        "Answer with one JSON object with these four fields and nothing else."
    ),
}


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """What the default question asks for: four strings about one clip."""

    scene: str
    speech: str
    on_screen_text: str
    summary: str


MAX_LENGTHS = {"scene": 800, "speech": 800, "on_screen_text": 800, "summary": 400}
"""In characters. Without a limit a model that repeats itself fills ``max_tokens`` and the JSON never closes."""


def analysis_schema() -> Json:
    """JSON schema of `AnalysisResult`: strict, every field required, nothing else allowed."""
    return {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": length} for name, length in MAX_LENGTHS.items()},
        "required": list(MAX_LENGTHS),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt and the schema its answer must keep to; ``schema`` None asks for free text."""

    prompt: str
    schema: Json | None
    schema_name: str = SCHEMA_NAME

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits that change with the prompt or the schema."""
        return fingerprint(asdict(self))


def default_question(language: str = "ko") -> Question:
    """The four-field analysis, asked in Korean or English.

    Raises:
        UnknownName: another language.
    """
    if language not in get_args(Language):
        raise UnknownName(f"no prompt in language {language!r}; choose ko or en, or give your own with --prompt FILE")
    return Question(PROMPTS[cast(Language, language)], analysis_schema())


def load_question(
    *, prompt_file: Path | None = None, schema_file: Path | None = None, language: str = "ko"
) -> Question:
    """A user's own question. What is not given is the default's; a prompt of one's own without a schema is free text.

    Raises:
        InvalidRequest: a file that cannot be read, an empty prompt, or a schema that is none.
    """
    default = default_question(language)
    if prompt_file is None and schema_file is None:
        return default
    prompt = default.prompt if prompt_file is None else _read_text(prompt_file, "prompt").strip()
    if not prompt:
        raise InvalidRequest(f"prompt file {prompt_file} is empty; write what is to be asked of each clip")
    if schema_file is None:
        return Question(prompt, None)
    return Question(prompt, _read_schema(schema_file), _schema_name(schema_file))


def fingerprint(value: object) -> str:
    """Twelve hex digits of ``value`` as JSON; the order of keys does not matter."""
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _read_text(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InvalidRequest(f"{what} file {path} holds more than {MAX_FILE_BYTES} bytes; name another")
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"cannot read {what} file {path}: {problem}") from problem


def _read_schema(path: Path) -> Json:
    try:
        schema = parse_json(_read_text(path, "schema"))
    except ValueError as problem:
        raise InvalidRequest(f"schema file {path} is not JSON: {problem}") from problem
    if not isinstance(schema, dict):
        raise InvalidRequest(f"schema file {path} holds {type(schema).__name__}; a JSON schema is an object")
    try:
        schemas.check(schema)
    except ValueError as problem:
        raise InvalidRequest(f"schema file {path} is no JSON schema: {problem}") from problem
    return cast(Json, schema)


def _schema_name(path: Path) -> str:
    """A name OpenAI's rule allows (letters, digits, _ and -, at most 64), from the file's name."""
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in path.stem)
    return kept.strip("_")[:64] or SCHEMA_NAME
