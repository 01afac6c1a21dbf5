"""Write docs/cli.md from the commands' own help, or with --check fail when the file is stale."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vision_bench.cli.main import cli

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEADER = "# Commands\n\nMade by `make docs` from the commands themselves; `make check` fails when it is stale.\n"


def sections(command: click.Command, name: str, parent: click.Context | None) -> list[str]:
    """The help of ``command`` and of every command below it, as Markdown."""
    with click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100) as context:
        path = context.command_path
        found = [f"## `{path}`\n\n```text\n{command.get_help(context)}\n```\n"]
        if isinstance(command, click.Group):
            for verb in command.list_commands(context):
                child = command.get_command(context, verb)
                if child is not None:
                    found += sections(child, verb, context)
    return found


def main() -> int:
    """0 when written or up to date, 1 when stale."""
    text = "\n".join([HEADER, *sections(cli, "vision-bench", None)])
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
            print(f"{TARGET.name} is stale: run `make docs`", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
