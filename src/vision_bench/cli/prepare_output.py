"""What `prepare` says: a line for all that was odd, the final table of the original experiment, or one object."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from vision_bench.media.layout import CATEGORIES

if TYPE_CHECKING:
    from vision_bench.media.scene import Prepared


def print_outcome(prepared: Prepared) -> None:
    """One source's result and warnings, on stderr."""
    from vision_bench.media.container import display_name

    for warning in prepared.manifest["source"]["warnings"]:
        click.echo(f"warning: {_name(prepared)}: {warning}", err=True)
    for entry in prepared.manifest["not_made"]:
        span = f"{entry['start_seconds']:g}-{entry['end_seconds']:g} s"
        if entry["held_seconds"]:
            click.echo(
                f"warning: {_name(prepared)}: clip {entry['seq']} ({span}) not made: {entry['reason']}", err=True
            )
    made = f"{prepared.made} clips made of {prepared.asked}"
    if prepared.is_short:
        holds = prepared.manifest["source"]["video"]["duration_seconds"]
        made = f"source too short ({holds:.2f} s): {made}"
        last = prepared.manifest["clips"][-1:]
        if last and any(text.startswith("short:") for text in last[0]["warnings"]):
            made += f", the last of {last[0]['duration_seconds']:.2f} s"
    kept = f", {prepared.reused} of them already there" if prepared.reused else ""
    click.echo(f"{_name(prepared)}: {made}{kept}; in {display_name(str(prepared.folder))}", err=True)


def print_final_table(done: list[Prepared]) -> None:
    """Category, genre, clips, resolution, frame rate, average size, remarks; and the total."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Clips", title_justify="left")
    for heading in ("Category", "Genre", "Clips", "Resolution", "fps", "Average MB", "Remarks"):
        table.add_column(heading, justify="right" if heading in {"Clips", "fps", "Average MB"} else "left")
    for prepared in done:
        category = prepared.scene.split("/", 1)[0]
        table.add_row(category, CATEGORIES.get(category, "-"), *_numbers(prepared), _remarks(prepared))
    clips = [clip for prepared in done for clip in prepared.manifest["clips"]]
    table.add_section()
    table.add_row(
        "Total", "-", str(len(clips)), "-", "-", _average_mb(clips), f"{len(done)} source{'s' if len(done) > 1 else ''}"
    )
    Console(soft_wrap=False).print(table)


def as_object(done: list[Prepared], missing: list[str]) -> dict[str, Any]:
    """The whole run as JSON: each source's manifest with where it lies, and the targets without a source."""
    return {
        "sources": [
            {
                "scene": prepared.scene,
                "folder": str(prepared.folder),
                "asked": prepared.asked,
                "made": prepared.made,
                "reused": prepared.reused,
                "is_short": prepared.is_short,
                "failed": list(prepared.failed),
                "manifest": prepared.manifest,
            }
            for prepared in done
        ],
        "missing": missing,
    }


def _name(prepared: Prepared) -> str:
    from vision_bench.media.container import display_name

    return display_name(prepared.manifest["source"]["name"])


def _numbers(prepared: Prepared) -> tuple[str, str, str, str]:
    clips = prepared.manifest["clips"]
    if not clips:
        return "0", "-", "-", "n/a"
    first = clips[0]
    fps = "-" if first["fps"] is None else f"{first['fps']:.2f}".rstrip("0").rstrip(".")
    return str(len(clips)), f"{first['width']}x{first['height']}", fps, _average_mb(clips)


def _average_mb(clips: list[dict[str, Any]]) -> str:
    return f"{sum(clip['bytes'] for clip in clips) / len(clips) / 1e6:.2f}" if clips else "n/a"


def _remarks(prepared: Prepared) -> str:
    """The encoder, and how many clips carry which warning."""
    codes = Counter(warning.split(":", 1)[0] for clip in prepared.manifest["clips"] for warning in clip["warnings"])
    parts = [prepared.manifest["settings"]["encoder"]]
    if prepared.made != prepared.asked:
        parts.append(f"{prepared.asked} asked")
    parts += [f"{count}x {code}" for code, count in sorted(codes.items())]
    return ", ".join(parts)
