"""The table of verbs: names, exit codes, one-line errors."""

from __future__ import annotations

import signal
import sys
from types import ModuleType

import click
import pytest

from vision_bench.cli import main as table
from vision_bench.errors import InvalidMedia, MissingExtra, UpstreamTimeout


def verb_that(monkeypatch: pytest.MonkeyPatch, action: object) -> None:
    """Put a verb named `try` into the table that runs ``action``."""

    @click.command()
    def command() -> object:
        if isinstance(action, BaseException):
            raise action
        return action

    module = ModuleType("vision_bench.cli.try_")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(table.VERBS, "try", ("try_", "A verb for this test."))


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (None, 0),
        (3, 3),
        (InvalidMedia("clip 0007.mp4 holds no picture"), 2),
        (MissingExtra("baseline", "this model"), 4),
        (UpstreamTimeout("no answer in 600 s"), 3),
        (KeyboardInterrupt(), 130),
        (click.UsageError("no such thing"), 2),
    ],
)
def test_a_verb_ends_with_the_code_of_what_happened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], action: object, code: int
) -> None:
    """Errors end in their class's code with their message on stderr and nothing on stdout."""
    verb_that(monkeypatch, action)
    with pytest.raises(SystemExit) as stopped:
        table.main(["try"])
    assert stopped.value.code == code
    printed = capsys.readouterr()
    assert printed.out == ""
    if isinstance(action, Exception):
        assert str(action) in printed.err or isinstance(action, click.UsageError)


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error outside the tree is ours: it is not dressed up as the user's."""
    verb_that(monkeypatch, ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        table.main(["try"])


@pytest.mark.parametrize("verb", list(table.VERBS))
def test_every_verb_of_the_table_exists(verb: str) -> None:
    """Each row names a module with a click command, and its help says more than nothing."""
    command = table.cli.get_command(click.Context(table.cli), verb)
    assert command is not None
    assert command.help


def test_an_unknown_verb_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and the name that was asked for."""
    with pytest.raises(SystemExit) as stopped:
        table.main(["nonsense"])
    assert stopped.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_termination_unwinds_a_verb_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM in the middle of a verb: 130, after every `finally` ran."""
    cleaned = []

    @click.command()
    def command() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            cleaned.append(True)

    module = ModuleType("vision_bench.cli.term_")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(table.VERBS, "term", ("term_", "A verb for this test."))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as stopped:
            table.main(["term"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (stopped.value.code, cleaned) == (130, [True])


@pytest.mark.parametrize("verb", table.SERVERS)
def test_servers_keep_their_own_ending(verb: str) -> None:
    """They drain on SIGTERM; the table must name real verbs."""
    assert verb in table.VERBS
