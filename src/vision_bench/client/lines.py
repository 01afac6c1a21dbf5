"""From a clip, and what the gateway said of it, to its line in the results."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from vision_bench.answers.analysis import Question
from vision_bench.answers.body import ClipBody, Options
from vision_bench.answers.validate import validate
from vision_bench.client.gateway import BatchLine
from vision_bench.client.results import ResultLine
from vision_bench.client.traps import with_remedy
from vision_bench.errors import HttpFailure, InvalidMedia, VisionBenchError
from vision_bench.wire.chat import read_reply

NO_ANSWER = "no_answer"
"""Outcome: status 200, and a body without a choice in it."""

_OK = 200
_GATEWAY_FAILURE = re.compile(r"([a-z]+(?:_[a-z]+)+): ")


@dataclass(frozen=True, slots=True)
class Job:
    """A clip ready to be sent. ``name`` is its id on the wire."""

    clip: Path
    name: str
    sha256: str
    size_bytes: int
    built: ClipBody


def clip_path(clip: Path) -> str:
    """How a clip is written in the results: as given, with forward slashes; bytes that are no text become ``?``."""
    return _as_text(os.path.normpath(clip).replace(os.sep, "/"))


def _as_text(name: str) -> str:
    return name.encode(errors="replace").decode()


def _outcome(problem: Exception) -> str:
    """The one word for a failure; ``error`` for one that nobody foresaw."""
    return problem.outcome if isinstance(problem, VisionBenchError) else VisionBenchError.outcome


def _reason(problem: Exception) -> str:
    return str(problem) if isinstance(problem, VisionBenchError) else f"{type(problem).__name__}: {problem}"


class LineMaker:
    """Makes the lines of one question asked with one set of settings.

    ``request_id`` arguments are the part behind the fingerprint, which every line's id starts with.
    """

    def __init__(self, question: Question, options: Options) -> None:
        self.question = question
        self.options = options
        self.fingerprint = options.fingerprint(question)

    def unsent(self, clip: Path, sha256: str | None, problem: Exception) -> ResultLine:
        """The line of a file that cannot be sent."""
        return ResultLine(
            clip=clip_path(clip),
            clip_id=_as_text(clip.stem),
            sha256=sha256,
            model=self.options.model,
            fps=self.options.wire_fps,
            use_audio_in_video=False,
            status=None,
            outcome=InvalidMedia.outcome if isinstance(problem, OSError) else _outcome(problem),
            result=None,
            error=_reason(problem),
            raw=None,
            warnings=(),
            elapsed_ms=None,
            usage=None,
            request_id=f"{self.fingerprint}-unsent",
        )

    def failed(self, job: Job, failure: Exception, request_id: str) -> ResultLine:
        """The line of a clip that was lost to ``failure``: of its whole batch, or in reading its answer."""
        return replace(
            self._sent(job, request_id),
            status=failure.status if isinstance(failure, HttpFailure) else None,
            outcome=_outcome(failure),
            error=with_remedy(_reason(failure)),
        )

    def judged(self, job: Job, line: BatchLine, request_id: str) -> ResultLine:
        """The line of a clip that the gateway has a line for."""
        sent = replace(self._sent(job, request_id), status=line.status, elapsed_ms=line.elapsed_ms)
        if line.status != _OK or line.body is None:
            message = line.error or "no body and no error"
            # The gateway's own failures start with their class and took no model time.
            own = _GATEWAY_FAILURE.match(message) if not line.elapsed_ms else None
            return replace(sent, outcome=own[1] if own else HttpFailure.outcome, error=with_remedy(message))
        try:
            reply = read_reply(line.body)
        except ValueError as problem:
            return replace(sent, outcome=NO_ANSWER, error=with_remedy(str(problem)))
        verdict = validate(reply, self.question)
        return replace(
            sent,
            model=reply.model or sent.model,
            outcome=verdict.outcome,
            result=verdict.result,
            error=verdict.error,
            raw=verdict.raw,
            warnings=sent.warnings + verdict.warnings,
            usage=reply.usage,
        )

    def _sent(self, job: Job, request_id: str) -> ResultLine:
        """What is known of a clip once it has been sent."""
        return ResultLine(
            clip=clip_path(job.clip),
            clip_id=_as_text(job.clip.stem),
            sha256=job.sha256,
            model=self.options.model,
            fps=self.options.wire_fps,
            use_audio_in_video=job.built.use_audio_in_video,
            status=None,
            outcome=NO_ANSWER,
            result=None,
            error=None,
            raw=None,
            warnings=job.built.warnings,
            elapsed_ms=None,
            usage=None,
            request_id=f"{self.fingerprint}-{request_id}",
        )
