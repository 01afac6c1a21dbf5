"""The table of verbs. A verb's module is imported when the verb runs, so that ``--help`` costs nothing."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from vision_bench.errors import VisionBenchError

VERBS: dict[str, tuple[str, str]] = {
    # verb: (module in vision_bench.cli holding a click command named `command`, its one-line help)
    "prepare": ("prepare", "Cut a source video into clips and a blackout copy."),
    "broadcast": ("broadcast", "Make a labelled synthetic broadcast."),
    "serve": ("serve", "Run the gateway in front of vLLM."),
    "engine": ("engine", "Run an embedded engine that speaks vLLM's wire."),
    "analyze": ("analyze", "Ask about many clips; write one NDJSON line a clip."),
    "run": ("run", "Put a workload to a server under load and measure it."),
    "compare": ("compare", "Hold one run against another: faster, slower, equivalent or inconclusive."),
    "envelope": ("envelope", "Find the smallest input that is accurate enough."),
    "judge": ("judge", "Let a model decide what no scorer can."),
    "report": ("report", "Draw a run or an analysis as one HTML page."),
    "equivalence": ("equivalence", "Compare our preprocessor with the stock one, bit for bit."),
    "doctor": ("doctor", "Check encoders, fonts, extras and the server."),
    "publish": ("publish", "Send a film into a live stream, as a camera."),
    "purge": ("purge", "Discard media, runs and reports."),
}


SERVERS = ("serve", "engine")
"""Verbs that handle signals themselves: they finish what runs, then end."""


class VerbTable(click.Group):
    """A group that knows its verbs' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"vision_bench.cli.{VERBS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


@click.command(cls=VerbTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("vision-bench"), prog_name="vision-bench")
def cli() -> None:
    """Real-time video understanding and generation, served and measured."""


def _end_as_if_interrupted() -> None:
    """Let SIGTERM and SIGHUP unwind the program as Ctrl-C does, so that children end and no half file stays."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def main(argv: list[str] | None = None) -> None:
    """Entry point. Exit codes: 0 done; 1 our bug; 2 usage or bad file; 3 finished, some items failed or short;
    4 nothing could be done; 5 a gate said no; 130 interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if not set(SERVERS).intersection(arguments[:1]):
            _end_as_if_interrupted()
        outcome: Any = cli.main(args=arguments, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except VisionBenchError as problem:
        click.echo(f"error: {problem}", err=True)
        sys.exit(problem.exit_code)
    sys.exit(outcome if isinstance(outcome, int) else 0)
