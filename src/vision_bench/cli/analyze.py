"""``vision-bench analyze``: ask about many clips; write one NDJSON line a clip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from vision_bench.answers.analysis import Question
    from vision_bench.answers.body import Options
    from vision_bench.client.analyze import Summary

EXISTING = click.Path(exists=True, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option(
    "--gateway", default="http://127.0.0.1:8001", show_default=True, help="Gateway, or a server's /v1 address."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("runs/analysis/results.ndjson"),
    show_default=True,
    help="Results file. Clips that it answers already, under the same question and settings, are not sent again.",
)
@click.option("--fps", type=float, help="Frames a second that the model looks at.  [default: 2]")
@click.option("--num-frames", type=int, help="A count instead of a rate; vLLM heeds it for --send frames only.")
@click.option("--batch", default=16, show_default=True, type=click.IntRange(1), help="Clips in one batch request.")
@click.option("--model", default="qwen", show_default=True, help="Served model name.")
@click.option("--prompt", "prompt_file", type=FILE, help="Your own question; without --schema the answer is free text.")
@click.option("--schema", "schema_file", type=FILE, help="Your own JSON schema; answers are held to it.")
@click.option("--lang", default="ko", show_default=True, type=click.Choice(["ko", "en"]), help="Built-in question.")
@click.option("--temperature", default=0.3, show_default=True, type=float, help="Higher lets characters degenerate.")
@click.option("--max-tokens", default=1024, show_default=True, type=int, help="Longest answer.")
@click.option("--no-audio", is_flag=True, help="Do not ask for the sound.")
@click.option(
    "--send",
    default="video",
    show_default=True,
    type=click.Choice(["video", "frames"]),
    help="The whole MP4, or three key frames and a WAV.",
)
@click.option(
    "--dialect",
    default="vllm",
    show_default=True,
    type=click.Choice(["vllm", "sglang", "openai"]),
    help="Whose keys the body uses. A plain OpenAI server reads no video, so it is sent frames.",
)
@click.option("--api-key", envvar="VISION_BENCH_API_KEY", help="Bearer token; also VISION_BENCH_API_KEY.")
@click.option(
    "--length", default=6, show_default=True, type=click.IntRange(1), help="Seconds a clip, if a film is cut."
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="DATA_DIR",
    default=Path("data"),
    show_default=True,
    help="Where the clips of a film go; also DATA_DIR.",
)
@click.option("--no-cut", is_flag=True, help="Send long files whole.")
@click.option("--dry-run", is_flag=True, help="Send nothing; say what it would be in bytes, tokens and time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(paths: tuple[Path, ...], prompt_file: Path | None, schema_file: Path | None, **flags: Any) -> int:
    """Ask about every clip under PATH and write one NDJSON line a clip.

    PATH is a clip, a folder of clips, or a film that was never cut, which is then cut first.

    Exit status: 0 every clip has a good answer; 2 a bad file or option; 3 some clips have none; 4 nothing was done.
    """
    from vision_bench.answers.analysis import load_question
    from vision_bench.answers.body import Options

    question = load_question(prompt_file=prompt_file, schema_file=schema_file, language=flags["lang"])
    options = Options(
        model=flags["model"],
        fps=flags["fps"],
        num_frames=flags["num_frames"],
        temperature=flags["temperature"],
        max_tokens=flags["max_tokens"],
        use_audio=not flags["no_audio"],
        dialect=flags["dialect"],
        send=flags["send"],
    )
    clips = _find(paths, flags)
    if not clips:
        click.echo(f"error: no clip under {', '.join(map(str, paths))}; give MP4 files or folders of them", err=True)
        return 4
    run = _estimate if flags["dry_run"] else _analyze
    return run(clips, question, options, flags)


def _find(paths: tuple[Path, ...], flags: dict[str, Any]) -> list[Path]:
    """The clips; a film that was never cut is cut into DATA_DIR/clips/adhoc."""
    from fractions import Fraction

    from vision_bench.cli.console import bar
    from vision_bench.client.sources import find_clips
    from vision_bench.errors import InvalidSettings
    from vision_bench.media.clips import cut_whole
    from vision_bench.media.container import display_name

    def cut(film: Path) -> list[Path]:
        try:
            with bar(f"cut {display_name(film)}") as step:
                made = cut_whole(
                    film,
                    data_dir=flags["data_dir"],
                    length=Fraction(flags["length"]),
                    progress=lambda ready, wanted: step(0, completed=ready, total=wanted),
                )
        except OSError as problem:
            place = display_name(str(problem.filename or flags["data_dir"]))
            raise InvalidSettings(
                f"cannot cut {display_name(film)} ({place}: {problem.strerror or problem}); free it, give another "
                "--data-dir, or send files as they are with --no-cut"
            ) from problem
        for failure in made.failed:
            click.echo(failure, err=True)
        return made.paths

    return find_clips(paths, length_seconds=flags["length"], cut=None if flags["no_cut"] else cut)


def _analyze(clips: list[Path], question: Question, options: Options, flags: dict[str, Any]) -> int:
    import asyncio
    import json
    from dataclasses import asdict

    from vision_bench.cli.console import bar
    from vision_bench.client.analyze import analyze
    from vision_bench.client.results import ResultLine
    from vision_bench.client.sender import open_sender
    from vision_bench.errors import ConnectFailed

    failed = 0
    with bar("analyze", len(clips)) as step:

        def on_line(line: ResultLine | None) -> None:
            nonlocal failed
            failed += line is not None and not line.is_ok
            step(note=f"[red]{failed} failed" if failed else "")

        async def run() -> Summary:
            sender = open_sender(flags["gateway"], api_key=flags["api_key"])
            return await analyze(
                clips,
                out=flags["out"],
                question=question,
                options=options,
                batch_size=flags["batch"],
                sender=sender,
                on_line=on_line,
            )

        try:
            summary = asyncio.run(run())
        except ConnectFailed as problem:  # nothing was written: more than some clips that failed
            click.echo(f"error: {problem}", err=True)
            return 4
    if flags["as_json"]:
        click.echo(json.dumps(asdict(summary) | {"ok": summary.ok, "failed": summary.failed}, default=str))
    else:
        _show_summary(summary)
    return 0 if summary.is_complete else 3 if summary.ok else 4


def _show_summary(summary: Summary) -> None:
    from vision_bench.cli.console import print_table, shown_ms
    from vision_bench.media.container import display_name

    latency = summary.latency_ms
    rows = [
        ("clips", f"{summary.clips}"),
        ("good answers", f"{summary.ok}" + (f" ({summary.kept} from an earlier run)" if summary.kept else "")),
        *((f"  {outcome}", f"{count}") for outcome, count in summary.outcomes.items() if outcome != "ok"),
        *((f"  warning {name}", f"{count}") for name, count in summary.warnings.items()),
        ("latency p50", shown_ms(latency.p50, latency.count)),
        ("latency p99", shown_ms(latency.p99, latency.count)),
        ("tokens", f"{summary.prompt_tokens:,} prompt, {summary.completion_tokens:,} completion"),
        ("wall time", f"{summary.elapsed_seconds:.1f} s"),
        ("results", display_name(str(summary.out))),
    ]
    if summary.not_attempted:
        rows.insert(2, ("  not attempted", f"{summary.not_attempted} (the gateway was lost; run the command again)"))
    print_table("Analysis", rows)


def _estimate(clips: list[Path], question: Question, options: Options, flags: dict[str, Any]) -> int:
    import json
    from dataclasses import asdict

    from vision_bench.cli.console import bar, print_table, shown_bytes
    from vision_bench.client.estimate import estimate
    from vision_bench.client.results import read_results

    earlier = read_results(flags["out"]) if flags["out"].is_file() else None
    with bar("estimate", len(clips)) as step:
        cost = estimate(clips, question, options, earlier=earlier, on_clip=step)
    if flags["as_json"]:
        click.echo(json.dumps(asdict(cost)))
    else:
        seconds = "n/a (0 samples)" if cost.seconds is None else f"{cost.seconds:,.0f} s ({cost.measured} samples)"
        rows = [
            ("clips", f"{cost.clips}"),
            ("cannot be sent", f"{len(cost.unusable)}"),
            ("without sound", f"{cost.without_audio}"),
            ("request bytes", shown_bytes(cost.body_bytes)),
            ("prompt tokens", f"about {cost.prompt_tokens:,}"),
            ("completion tokens", f"at most {cost.max_completion_tokens:,}"),
            ("time, 4 at once", seconds),
        ]
        print_table("Dry run: nothing was sent", rows)
        for reason in cost.unusable:
            click.echo(reason, err=True)
    return 3 if cost.unusable else 0
