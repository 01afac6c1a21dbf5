"""Many clips to one NDJSON file: body, gateway batch, validated answer, a line appended as it comes.

A second run asks only for what is missing or failed. Bodies are made a batch at a time, so memory does not grow with
the number of clips; two batches are under way at once, so that the end of one does not leave the model idle.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vision_bench import stats
from vision_bench.answers.analysis import Question, default_question
from vision_bench.answers.body import Options, build
from vision_bench.client.gateway import DEFAULT_URL, BatchLine
from vision_bench.client.lines import Job, LineMaker, clip_path
from vision_bench.client.results import ResultLine, ResultsFile, read_results
from vision_bench.client.sender import Sender, open_sender
from vision_bench.errors import BrokenStream, ConnectFailed, InvalidMedia, VisionBenchError
from vision_bench.media.container import display_name
from vision_bench.wire.chat import Json

logger = logging.getLogger(__name__)

DEFAULT_OUT = Path("runs/analysis/results.ndjson")
DEFAULT_BATCH = 16
LANES = 2
MAX_BATCH_BYTES = 64 * 1024 * 1024
"""Of clips, before base64 makes them a third larger: a batch of long clips is closed early."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How a run went. Times and tokens are those of this run's good answers.

    Args:
        clips: all that were named; ``kept`` of them were answered by an earlier run and not sent again.
        outcomes: this run's lines counted by outcome.
        not_attempted: clips without a line, because the gateway was lost before their turn.
        latency_ms: the gateway's time an item.
        elapsed_seconds: wall time of the whole run.
    """

    out: Path
    clips: int
    kept: int
    outcomes: dict[str, int]
    warnings: dict[str, int]
    not_attempted: int
    latency_ms: stats.Summary
    prompt_tokens: int
    completion_tokens: int
    elapsed_seconds: float

    @property
    def ok(self) -> int:
        """Clips with a good answer in the file, earlier ones included."""
        return self.kept + self.outcomes.get("ok", 0)

    @property
    def failed(self) -> int:
        """Clips asked about in this run that have no good answer."""
        return sum(self.outcomes.values()) - self.outcomes.get("ok", 0)

    @property
    def is_complete(self) -> bool:
        """Every clip has a good answer."""
        return self.ok == self.clips


@dataclass(slots=True)
class _Run:
    """What the lanes of one run share."""

    maker: LineMaker
    sender: Sender
    file: ResultsFile
    done: frozenset[tuple[str, str]]
    batch_size: int
    on_line: Callable[[ResultLine | None], None]
    names: dict[Path, str]
    lines: list[ResultLine] = field(default_factory=list)
    kept: int = 0
    lost: ConnectFailed | None = None
    making: asyncio.Lock = field(default_factory=asyncio.Lock)  # one lane fills its batch before the next one starts

    def record(self, line: ResultLine) -> None:
        """Write a line down before anybody hears of it."""
        self.file.append(line)
        self.lines.append(line)
        self.on_line(line)

    def keep(self) -> None:
        """A clip that an earlier run has answered."""
        self.kept += 1
        self.on_line(None)


async def analyze(
    clips: Sequence[Path],
    *,
    gateway: str = DEFAULT_URL,
    out: Path = DEFAULT_OUT,
    question: Question | None = None,
    options: Options | None = None,
    batch_size: int = DEFAULT_BATCH,
    sender: Sender | None = None,
    on_line: Callable[[ResultLine | None], None] = lambda line: None,
) -> Summary:
    """Ask ``question`` about every clip; append a line a clip to ``out``.

    Args:
        clips: files, each one clip; `sources.find_clips` makes them of folders and uncut films.
        gateway: the gateway's root, or a model server's ``/v1`` address.
        sender: used instead of ``gateway``, and closed at the end.
        on_line: called with each line as it is written, and with None for each clip that needed no asking.

    Raises:
        ConnectFailed: nobody answered at the start. Lost later, the rest is not attempted and the summary says so.
        HttpFailure: the address answers, but its health check does not.
        InvalidRequest: another run is writing ``out``, or ``out`` is another kind of file.
        InvalidSettings: ``out`` cannot be written.
    """
    began = time.monotonic()
    maker = LineMaker(question or default_question(), options or Options())
    async with contextlib.AsyncExitStack() as stack:
        sender = sender or open_sender(gateway)
        stack.push_async_callback(sender.close)
        await sender.check()
        file = stack.enter_context(ResultsFile(out))  # locked before it is read: what it answers stays true
        run = _Run(
            maker=maker,
            sender=sender,
            file=file,
            done=frozenset(_answered(out, maker.fingerprint)),
            batch_size=max(1, batch_size),
            on_line=on_line,
            names=_wire_names(clips),
        )
        waiting = iter(clips)
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(LANES):
                    lanes.create_task(_lane(run, waiting))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures  # what ended the first lane ended the run
        file.compact()
    return _summarise(run, out, len(clips), time.monotonic() - began)


def analyze_clips(clips: Sequence[Path], **settings: object) -> Summary:
    """`analyze` for a program that is not async: the same arguments, and it waits."""
    return asyncio.run(analyze(clips, **settings))  # type: ignore[arg-type]  # handed through as they are


def _answered(out: Path, fingerprint: str) -> Iterator[tuple[str, str]]:
    """(clip, sha256) that ``out`` already answers under the same question and settings."""
    for line in read_results(out).lines:
        if line.is_ok and line.fingerprint == fingerprint and line.sha256:
            yield line.clip, line.sha256


def _wire_names(clips: Sequence[Path]) -> dict[Path, str]:
    """The clip id of each; its path, and then its number too, where clips would share a name. All can be printed."""
    names: dict[Path, str] = {}
    spellings: tuple[Callable[[int, Path], str], ...] = (
        lambda number, clip: display_name(clip.stem),
        lambda number, clip: display_name(clip_path(clip)),
        lambda number, clip: f"{display_name(clip_path(clip))}#{number}",
    )
    for spelling in spellings:
        spelled = {clip: spelling(number, clip) for number, clip in enumerate(clips) if clip not in names}
        counts = Counter([*spelled.values(), *names.values()])
        names |= {clip: name for clip, name in spelled.items() if counts[name] == 1}
    return names


async def _lane(run: _Run, waiting: Iterator[Path]) -> None:
    """Make a batch, send it, again, until no clip waits or the gateway is gone."""
    while run.lost is None:
        async with run.making:
            jobs = await _next_batch(run, waiting)
        if not jobs:
            return
        await _send(run, jobs)


async def _next_batch(run: _Run, waiting: Iterator[Path]) -> list[Job]:
    jobs: list[Job] = []
    size_bytes = 0
    while len(jobs) < run.batch_size and size_bytes < MAX_BATCH_BYTES:
        clip = next(waiting, None)
        if clip is None:
            break
        made = await asyncio.to_thread(_prepare, run, clip)
        if isinstance(made, Job):
            jobs.append(made)
            size_bytes += made.size_bytes
        elif made is not None:
            run.record(made)
        else:
            run.keep()
    return jobs


def _prepare(run: _Run, clip: Path) -> Job | ResultLine | None:
    """A job; a failed line for a clip that cannot be sent; None for one that is already answered."""
    sha256 = None
    try:
        if not clip.is_file():
            raise InvalidMedia(f"{display_name(clip)}: no regular file; name a clip or a folder of clips")
        data = clip.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        if (clip_path(clip), sha256) in run.done:
            return None
        built = build(data, clip.name, run.maker.question, run.maker.options)
    except Exception as problem:
        _note(problem, clip)
        return run.maker.unsent(clip, sha256, problem)
    return Job(clip, run.names[clip], sha256, len(data), built)


async def _send(run: _Run, jobs: list[Job]) -> None:
    """Send one batch; every job has its line afterwards."""
    token = uuid.uuid4().hex[:8]
    request_ids = {job.name: f"{token}-{index}" for index, job in enumerate(jobs)}
    waiting = {job.name: job for job in jobs}
    items = [(job.name, job.built.body) for job in jobs]
    failure: Exception = BrokenStream("the batch held no line for this clip")
    async with contextlib.aclosing(_received(run, items, f"{run.maker.fingerprint}-{token}")) as lines:
        async for line in lines:
            if isinstance(line, Exception):
                failure = line
            elif line.id in waiting:
                run.record(_judge(run, waiting.pop(line.id), line, request_ids[line.id]))
    if isinstance(failure, ConnectFailed):
        run.lost = failure
    for name, job in waiting.items():
        run.record(run.maker.failed(job, failure, request_ids[name]))


async def _received(
    run: _Run, items: Sequence[tuple[str, Json]], request_id: str
) -> AsyncGenerator[BatchLine | Exception, None]:
    """The batch's lines, and at last what it failed of: whatever that is, it costs only the clips without a line."""
    try:
        async with contextlib.aclosing(run.sender.send(items, request_id)) as lines:
            async for line in lines:
                yield line
    except Exception as problem:
        _note(problem, request_id)
        yield problem


def _judge(run: _Run, job: Job, line: BatchLine, request_id: str) -> ResultLine:
    try:
        return run.maker.judged(job, line, request_id)
    except Exception as problem:
        _note(problem, job.clip)
        return run.maker.failed(job, problem, request_id)


def _note(problem: Exception, of: Path | str) -> None:
    """A failure that nobody foresaw becomes a line like any other; where it came from is told here."""
    if not isinstance(problem, VisionBenchError | OSError):
        logger.error("%s: unexpected failure; the run goes on", display_name(of), exc_info=problem)


def _summarise(run: _Run, out: Path, clips: int, elapsed_seconds: float) -> Summary:
    good = [line for line in run.lines if line.is_ok]
    warnings = Counter(warning.partition(":")[0] for line in run.lines for warning in line.warnings)
    return Summary(
        out=out,
        clips=clips,
        kept=run.kept,
        outcomes=dict(Counter(line.outcome for line in run.lines).most_common()),
        warnings=dict(warnings.most_common()),
        not_attempted=clips - run.kept - len(run.lines),
        latency_ms=stats.summarise([line.elapsed_ms for line in good if line.elapsed_ms is not None]),
        prompt_tokens=sum(_tokens(line, "prompt_tokens") for line in good),
        completion_tokens=sum(_tokens(line, "completion_tokens") for line in good),
        elapsed_seconds=elapsed_seconds,
    )


def _tokens(line: ResultLine, name: str) -> int:
    return int((line.usage or {}).get(name) or 0)
