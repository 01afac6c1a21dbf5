"""Two runs of the same load: which is faster, by how much, how sure that is, and whether it is as right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vision_bench import significance
from vision_bench.bench.arms import Arm, ArmStep, Series, read_arm
from vision_bench.bench.chat.numbers import SCHEDULED, SERVICE
from vision_bench.bench.rundir import is_run_folder
from vision_bench.bench.same_load import differences
from vision_bench.errors import InvalidRequest
from vision_bench.stats import percentile, samples_needed

Json = dict[str, Any]

SCHEMA = 1
HEADLINES = ("scheduled_ttft_ms", "response_ms", "tpot_ms", "max_icl_ms")
METRICS = tuple(name for name in {**SCHEDULED, **SERVICE} if name.endswith("_ms"))
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
MARGIN = 0.05
VERDICTS = ("FASTER", "SLOWER", "EQUIVALENT", "INCONCLUSIVE")
FAIL_ON = ("slower", "inconclusive", "less-correct")


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What is compared: B against A.

    Attributes:
        margin: 0.05 calls times within 5 % of each other equivalent.
        resamples: None takes as many as the number of tests needs, 2000 at least.
        is_forced: compare although workload, schedules or payloads differ.
    """

    a: Path
    b: Path
    margin: float = MARGIN
    metrics: Sequence[str] = HEADLINES
    resamples: int | None = None
    seed: int = 0
    is_forced: bool = False


@dataclass(frozen=True, slots=True)
class _Number:
    """One number of one step in both runs; ``withheld`` says of each percentile why it cannot be tested, or None."""

    step: str
    metric: str
    a: Series
    b: Series
    said: Json
    block: int
    is_paired: bool
    withheld: Mapping[str, str | None]

    @property
    def testable(self) -> list[str]:
        return [name for name, reason in self.withheld.items() if reason is None]


def compare(options: CompareOptions, *, on_number: Callable[[], None] = lambda: None) -> Json:
    """The comparison as strict JSON: a row for each step, number and percentile, and the correctness of both.

    All p-values of one question are one family (Holm): the chance that any row gets a wrong answer to it is 5 %.

    Raises:
        InvalidRequest: a folder is no run, a number is not known, or the runs were given different things to do.
    """
    _check(options)
    a, b = read_arm(options.a, options.metrics), read_arm(options.b, options.metrics)
    differ = differences(a.manifest, b.manifest)
    if differ and not options.is_forced:
        raise InvalidRequest(
            f"the runs were given different things to do ({'; '.join(differ)}); --force compares them all the same"
        )
    steps = [name for name in a.steps if name in b.steps]
    if not steps:
        raise InvalidRequest(f"{options.a} and {options.b} have no step in common; repeat one with the other's options")
    numbers = [_number(name, metric, a.steps[name], b.steps[name]) for name in steps for metric in options.metrics]
    family = sum(len(number.testable) for number in numbers)
    resamples = resamples_for(options.resamples, family)
    ratios: list[dict[str, significance.Ratio]] = []
    for number in numbers:
        ratios.append(_ratios(number, options, resamples))
        on_number()
    rows = _judged(numbers, ratios)
    return {
        "schema": SCHEMA,
        "a": a.facts(),
        "b": b.facts(),
        "differences": differ,
        "is_interleaved": _are_interleaved(a, b),
        "margin": options.margin,
        "confidence": 1.0 - significance.ALPHA,
        "resamples": resamples,
        "family": family,
        "verdicts": {name: Counter(row["verdict"] for row in rows)[name] for name in VERDICTS},
        "steps": steps,
        "rows": rows,
        "correctness": _correctness(a, b),
    }


def _check(options: CompareOptions) -> None:
    for path in (options.a, options.b):
        if not is_run_folder(path):
            raise InvalidRequest(f"{path} is no run folder; give two that `vision-bench run` has made")
    for name in options.metrics:
        if name not in METRICS:
            raise InvalidRequest(f"no number is called {name!r}; known are {', '.join(METRICS)}")
    if not 0.0 < options.margin < 1.0:
        raise InvalidRequest(f"the margin is {options.margin:g}; give a share such as 0.05")


def _number(step: str, metric: str, first: ArmStep, second: ArmStep) -> _Number:
    a, b = first.values[metric], second.values[metric]
    present = _present(a), _present(b)
    counts = [len(values) for values in present]
    block = significance.block_length(*present)
    is_paired = first.items == second.items
    return _Number(
        step,
        metric,
        a,
        b,
        {
            "count": counts,
            "is_paired": is_paired,
            "block": block,
            "step_verdicts": [first.verdict, second.verdict],
        },
        block,
        is_paired,
        {name: _untestable(fraction, counts, block, min(len(a), len(b))) for name, fraction in PERCENTILES.items()},
    )


def resamples_for(asked: int | None, family: int) -> int:
    """As many as it takes for a p-value to be small enough for the whole family, with some room.

    Raises:
        InvalidRequest: fewer were asked for than can show anything.
    """
    needed = math.ceil(2 * family / significance.ALPHA)
    if asked is not None and asked < needed:
        raise InvalidRequest(f"with {family} tests, {asked} resamples can show nothing; give {needed} or more")
    return max(significance.RESAMPLES, 2 * needed) if asked is None else asked


def _ratios(number: _Number, options: CompareOptions, resamples: int) -> dict[str, significance.Ratio]:
    names = number.testable
    if not names:
        return {}
    found = significance.quantile_ratios(
        number.a,
        number.b,
        [PERCENTILES[name] for name in names],
        margin=options.margin,
        is_paired=number.is_paired,
        block=number.block,
        resamples=resamples,
        seed=options.seed,
    )
    return dict(zip(names, found, strict=True))


def _untestable(fraction: float, counts: Sequence[int], block: int, length: int) -> str | None:
    """Why a percentile cannot be compared."""
    needed = samples_needed(fraction)
    if min(counts) < needed:
        return f"{min(counts)} samples, {needed} needed"
    if length < significance.FEWEST_BLOCKS * block:
        return (
            f"{length} requests that hang together over {block} are fewer than {significance.FEWEST_BLOCKS} "
            "independent blocks; run longer"
        )
    return None


def _quantile(present: list[float], fraction: float) -> float | None:
    """None where it is infinite, or the sample cannot carry it."""
    return _finite(percentile(present, fraction)) if len(present) >= samples_needed(fraction) else None


def _judged(numbers: Sequence[_Number], ratios: Sequence[Mapping[str, significance.Ratio]]) -> list[Json]:
    """A row for each percentile with its verdict, now that the whole family is known."""
    tested = [ratio for found in ratios for ratio in found.values()]
    differ = iter(significance.holm([ratio.p_differs for ratio in tested]))
    outside = iter(significance.holm([ratio.p_outside for ratio in tested]))
    rows = []
    for number, found in zip(numbers, ratios, strict=True):
        for name, fraction in PERCENTILES.items():
            ratio = found.get(name)
            values = {"a": _quantile(_present(number.a), fraction), "b": _quantile(_present(number.b), fraction)}
            told = _untold(number.withheld[name]) if ratio is None else _told(ratio, next(differ), next(outside))
            named = {"step": number.step, "metric": number.metric, "percentile": name}
            rows.append(named | values | number.said | told)
    return rows


def _untold(reason: str | None) -> Json:
    empty = dict.fromkeys(("ratio", "interval", "p_differs", "p_outside"))
    return {**empty, "verdict": "INCONCLUSIVE", "reason": reason}


def _told(ratio: significance.Ratio, p_differs: float, p_outside: float) -> Json:
    verdict = significance.direction(ratio.estimate, p_differs, p_outside)
    return {
        "ratio": _finite(ratio.estimate),
        "interval": [_finite(end) for end in ratio.interval],
        "p_differs": round(p_differs, 6),
        "p_outside": round(p_outside, 6),
        "verdict": verdict,
        "reason": _reason(ratio, verdict),
    }


def _reason(ratio: significance.Ratio, verdict: str) -> str:
    if ratio.estimate is None:
        return "infinite or zero in both runs"
    if ratio.estimate == float("inf"):
        return "infinite in B alone: too many failed"
    if ratio.estimate == 0.0:
        return "infinite in A alone: too many failed"
    said = f"{abs(ratio.estimate - 1.0):.1%} {'more' if ratio.estimate >= 1.0 else 'less'}"
    return said if verdict != "INCONCLUSIVE" else f"{said}, not certain and not certainly within the margin"


def _correctness(a: Arm, b: Arm) -> Json | None:
    """McNemar over the first answer to each body or, with labels, about each item; None where nothing was checked."""
    name = "correct" if a.correct and b.correct else "valid"
    first, second = (a.correct, b.correct) if name == "correct" else (a.valid, b.valid)
    common = sorted(set(first) & set(second))
    if not common:
        return None
    counts = Counter((first[body], second[body]) for body in common)
    only_a, only_b = counts[True, False], counts[False, True]
    p = significance.mcnemar(only_a, only_b)
    word = "NO DIFFERENCE SHOWN" if p > significance.ALPHA else "MORE CORRECT" if only_b > only_a else "LESS CORRECT"
    return {
        "measure": name,
        "count": len(common),
        "both": counts[True, True],
        "only_a": only_a,
        "only_b": only_b,
        "neither": counts[False, False],
        "p": round(p, 6),
        "verdict": word,
    }


def _are_interleaved(a: Arm, b: Arm) -> bool:
    """Whether they are arms of one run, measured in turn."""
    pair = a.manifest.get("arms")
    return pair is not None and pair == b.manifest.get("arms")


def failed_gates(found: Json | None, gates: Sequence[str]) -> list[str]:
    """Which of ``gates`` are met, in words: what a script stops for. Without a comparison they are only checked.

    Raises:
        InvalidRequest: a gate that does not exist.
    """
    for gate in gates:
        if gate not in FAIL_ON:
            raise InvalidRequest(f"--fail-on {gate!r} is not known; choose among {', '.join(FAIL_ON)}")
    if found is None:
        return []
    said = []
    verdicts = found["verdicts"]
    if "slower" in gates and verdicts["SLOWER"]:
        said.append(f"{verdicts['SLOWER']} of {len(found['rows'])} are SLOWER")
    if "inconclusive" in gates and verdicts["INCONCLUSIVE"]:
        said.append(f"{verdicts['INCONCLUSIVE']} of {len(found['rows'])} are INCONCLUSIVE")
    if "less-correct" in gates and (found["correctness"] or {}).get("verdict") == "LESS CORRECT":
        said.append("B is LESS CORRECT")
    return said


def _present(values: Series) -> list[float]:
    return [value for value in values if value is not None]


def _finite(value: float | None) -> float | None:
    return None if value is None or value in (float("inf"), float("-inf")) else round(value, 6)
