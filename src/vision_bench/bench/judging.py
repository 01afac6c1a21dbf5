"""A judge model reads the answers of a run whose labels want one, and its verdicts join the run's accuracy.

Done behind the clock, as often as needed: what has a verdict is not asked again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vision_bench.answers.judging import judge_body, read_verdict
from vision_bench.bench.chat.bodies import Bodies, make_template
from vision_bench.bench.chat.pool import Pool
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.chat.scoring import Judged, Scoring
from vision_bench.bench.chat.target import ChatTarget, read_address
from vision_bench.bench.chat.verdicts import keeping, read_verdicts
from vision_bench.bench.clock import MonotonicClock
from vision_bench.bench.record import OK
from vision_bench.bench.rundir import read_manifest, read_records
from vision_bench.bench.summary import write_summary
from vision_bench.errors import InvalidRequest

Json = dict[str, Any]

GROUP = 256
"""Bodies made at a time: memory does not grow with the run."""
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """Who judges, and how many answers at once."""

    target: str
    model: str
    concurrency: int = 4
    api_key: str | None = None


class Outcome(NamedTuple):
    """What a judge did: verdicts given, and answers that still wait because it failed or said something else."""

    judged: int
    right: int
    failed: int
    summary: Json


class _Question(NamedTuple):
    judged: Judged
    body: Json


def judge_run(folder: Path, options: JudgeOptions, *, on_answer: Callable[[], None] | None = None) -> Outcome:
    """``judge`` in an event loop of its own."""
    return asyncio.run(judge(folder, options, on_answer=on_answer))


async def judge(folder: Path, options: JudgeOptions, *, on_answer: Callable[[], None] | None = None) -> Outcome:
    """Ask the judge about every answer that waits for it, and make the summary anew.

    Raises:
        InvalidRequest: no run folder, no label that wants a judge, or another wire than single chats.
        ConnectFailed, UnknownName: the judge cannot be used; nothing was written.
    """
    address = read_address(options.target)
    if address.wire == "batch":
        raise InvalidRequest("a judge is asked one answer at a time; give /chat or /v1/chat/completions as --target")
    questions = _waiting(folder, options.model)
    verdicts: Counter[bool | None] = Counter()
    with MonotonicClock() as clock:
        async with Pool(address.host, address.port, is_secure=address.is_secure) as pool:
            while group := list(itertools.islice(questions, GROUP)):
                bodies = Bodies([make_template("judge", question.body) for question in group])
                target = ChatTarget(
                    address,
                    pool,
                    bodies,
                    clock=clock,
                    timeout_seconds=TIMEOUT_SECONDS,
                    run_id="vb-judge",
                    api_key=options.api_key,
                )
                if not verdicts:
                    await target.check(options.model)
                with keeping(folder) as keep:
                    async for question, verdict in _verdicts(target, group, clock, options.concurrency):
                        verdicts[verdict] += 1
                        if verdict is not None:
                            keep(question.judged, verdict, model=options.model)
                        if on_answer is not None:
                            on_answer()
    return Outcome(verdicts[True] + verdicts[False], verdicts[True], verdicts[None], write_summary(folder))


def _waiting(folder: Path, model: str) -> Iterator[_Question]:
    manifest = read_manifest(folder)
    scoring = Scoring.of_manifest(manifest["workload"], read_verdicts(folder))
    if scoring is None or not scoring.wants_judge:
        raise InvalidRequest(f'no label of the run in {folder} has the scorer "judge"; there is nothing to judge')
    asked = manifest["workload"]["values"]["prompt"]
    return (
        _Question(judged, judge_body(model=model, question=asked, fact=str(fact.value), answer=text))
        for record in read_records(folder, ChatRecord)
        for judged, fact, text in scoring.waiting(record)
    )


async def _verdicts(
    target: ChatTarget, group: Sequence[_Question], clock: MonotonicClock, concurrency: int
) -> AsyncIterator[tuple[_Question, bool | None]]:
    """Each question and its verdict, as they come; None where the judge failed or said something else."""
    free = asyncio.Semaphore(concurrency)

    async def ask(place: int) -> tuple[_Question, bool | None]:
        async with free:
            now_ns = clock.now_ns()
            record = ChatRecord(step=0, index=place, ordinal=place, due_ns=now_ns, dsp_ns=now_ns)
            await target.send(record)
            return group[place], read_verdict(record.text or "") if record.outcome == OK else None

    for answered in asyncio.as_completed([ask(place) for place in range(len(group))]):
        yield await answered
