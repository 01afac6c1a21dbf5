"""Every error this project raises on purpose, by who can do something about it.

::

    VisionBenchError
    ├── CallerError              the caller sent or named something wrong                 exit 2
    │   ├── InvalidMedia         a file, stream or payload that is not usable video or sound
    │   ├── InvalidRequest       a body, prompt, schema or argument that cannot be sent
    │   └── UnknownName          a category, genre, model or option that does not exist
    ├── OperatorError            whoever runs the machine must change something           exit 4
    │   ├── MissingExtra         an optional dependency is not installed
    │   ├── MissingTool          an encoder, font or program is not there
    │   └── InvalidSettings      a setting of the environment is missing or wrong, a port is taken, a disk is full
    └── UpstreamError            the server behind us failed                              exit 3
        ├── ConnectFailed        nobody answers at the address
        ├── UpstreamTimeout      it took longer than it was given
        ├── AcquireTimeout       no permit came free in time
        ├── HttpFailure          it answered with an error status
        └── BrokenStream         the answer ended early or held an error event

What a command line names, an option or a file of any kind, is the caller's (2); what it finds on the machine, such as
variables, addresses and room on the disk, is the operator's (4).

Messages hold the value and the remedy: ``clip 0007.mp4 has 2 audio streams; choose one with audio_index``.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class VisionBenchError(Exception):
    """Root of the tree. ``exit_code`` is what a command ends with when this reaches it."""

    exit_code: ClassVar[int] = 1
    outcome: ClassVar[str] = "error"
    """The one word that counts this failure in reports and batch lines."""


class CallerError(VisionBenchError):
    """The caller sent or named something wrong."""

    exit_code = 2
    outcome = "invalid"


class InvalidMedia(CallerError):
    """A file, stream or payload that is not usable video or sound."""

    outcome = "invalid_media"


class InvalidRequest(CallerError):
    """A body, prompt, schema or argument that cannot be sent."""

    outcome = "invalid_request"


class UnknownName(CallerError):
    """A category, genre, model or option that does not exist."""

    outcome = "unknown_name"


class OperatorError(VisionBenchError):
    """Whoever runs the machine must change something."""

    exit_code = 4


class MissingExtra(OperatorError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, purpose: str) -> None:
        self.extra = extra
        super().__init__(f"{purpose} needs the extra {extra!r}: pip install 'vision-bench[{extra}]'")


class MissingTool(OperatorError):
    """An encoder, font or program is not there."""


class InvalidSettings(OperatorError):
    """A setting of the environment is missing or wrong, or a place on this machine cannot be had."""


class UpstreamError(VisionBenchError):
    """The server behind us failed."""

    exit_code = 3
    outcome = "upstream_error"


class ConnectFailed(UpstreamError):
    """Nobody answers at the address."""

    outcome = "connect_failed"


class UpstreamTimeout(UpstreamError):
    """The server took longer than it was given."""

    outcome = "upstream_timeout"


class AcquireTimeout(UpstreamError):
    """No permit came free in time."""

    outcome = "acquire_timeout"


class HttpFailure(UpstreamError):
    """The server answered with an error status; the body is kept."""

    outcome = "http_error"

    def __init__(
        self, status: int, message: str, *, body: bytes = b"", retry_after_seconds: float | None = None
    ) -> None:
        self.status = status
        self.message = message
        self.body = body
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"HTTP {status}: {message}")


class BrokenStream(UpstreamError):
    """The answer ended early, held an error event, or was not what was asked for."""

    outcome = "truncated"


def reason(problem: BaseException | None) -> str:
    """The system's word (``ECONNREFUSED``), else the class of the problem: whole messages repeat the address."""
    number = problem.errno if isinstance(problem, OSError) else None
    return errno.errorcode.get(number, f"error {number}") if number else type(problem).__name__
