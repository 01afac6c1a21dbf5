"""Other measuring tools: how each is told what to do, and where in its result file its own numbers stand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.truth.cells import TOKENS

Json = dict[str, Any]


class Program(NamedTuple):
    """An installed tool."""

    name: str
    version: str
    path: Path


@dataclass(frozen=True, slots=True)
class Load:
    """What a tool is asked to do: ``rate`` a second at constant gaps, ``seconds`` long.

    ``is_timed``: the window ends after ``seconds``, as a user who names a duration has it; else all requests are sent,
    however long that takes. ``cap``: requests in flight at once. ``image``: a ``data:`` URI in every body.
    """

    rate: float
    seconds: float
    is_timed: bool = False
    cap: int | None = None
    image: str | None = None

    @property
    def requests(self) -> int:
        """Arrivals that are due."""
        return round(self.rate * self.seconds)


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool says, of the requests that it says went well; None where it says nothing.

    ``gap_p99_ms`` and ``gap_max_ms``: the time between two events of one stream. ``latency_*``: what it gives as a
    request's time, from when it was due for a tool that knows that time.
    """

    ok: int
    failed: int
    rate: float | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    tpot_p50_ms: float | None
    tpot_p99_ms: float | None
    gap_p99_ms: float | None
    gap_max_ms: float | None
    latency_p50_ms: float | None
    latency_p90_ms: float | None
    latency_p99_ms: float | None

    def rounded(self) -> Json:
        """As a result file has it."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


class Peer(NamedTuple):
    """A tool: its name, the line that starts it, the reader of what it leaves."""

    title: str
    command: Callable[[Program, str, Load, Path], list[str]]
    read: Callable[[Path], Told]
    bears_offline: bool = True
    """AIPerf 0.13 refuses a tokenizer that lies on the disk when the model hub is switched off."""

    def environment(self) -> dict[str, str]:
        """Ours without this Python's and vLLM's; no usage report, and no model hub where the tool bears that."""
        foreign = ("VLLM_", "PYTHON", "VIRTUAL_ENV", "HF_", "TRANSFORMERS_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} if self.bears_offline else {}
        return kept | offline | {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer of bytes for tools that do not start without one: 256 letters, no merges."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {byte: chr(byte) for byte in visible} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {"id": 256, "content": "<end>", "special": True}
    end |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    vocabulary = {letters[byte]: byte for byte in range(256)} | {"<end>": 256}
    whole = {
        "version": "1.0", "added_tokens": [end], "normalizer": None, "pre_tokenizer": level, "post_processor": None,
        "decoder": level, "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }  # fmt: skip
    place = folder / "tokenizer"
    place.mkdir(exist_ok=True)
    (place / "tokenizer.json").write_text(json.dumps(whole), "utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "model_max_length": 1 << 20}
    (place / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    return place


def _write_lines(path: Path, load: Load, line: Callable[[str], Json], *, repeats: bool = True) -> Path:
    """A data set of the prompt that our own workload has; a few lines do where images are large and a tool repeats."""
    count = 4 if load.image and repeats else load.requests
    path.write_text("".join(json.dumps(line(f"What happens? {n}")) + "\n" for n in range(count)), "utf-8")
    return path


def _aiperf(program: Program, url: str, load: Load, folder: Path) -> list[str]:
    image = {} if load.image is None else {"image": load.image}
    lines = _write_lines(folder / "lines.jsonl", load, lambda prompt: {"text": prompt} | image)
    command = [
        str(program.path), "profile", "--model", "qwen", "--url", url, "--endpoint-type", "chat", "--streaming",
        "--tokenizer", str(write_tokenizer(folder)), "--use-server-token-count",
        "--input-file", str(lines), "--custom-dataset-type", "single_turn",
        "--request-rate", f"{load.rate:g}", "--arrival-pattern", "constant", "--request-count", str(load.requests),
        "--extra-inputs", f"max_tokens:{TOKENS}", "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics",
        "--random-seed", "7", "--output-artifact-dir", str(folder),
    ]  # fmt: skip
    command += ["--benchmark-duration", f"{load.seconds:g}"] if load.is_timed else []
    return command + (["--concurrency", str(load.cap)] if load.cap else [])


def read_aiperf(folder: Path) -> Told:
    """``profile_export_aiperf.json``. Its inter-token latency is everyone else's TPOT, its inter-chunk one the gap."""
    said = json.loads((folder / "profile_export_aiperf.json").read_text("utf-8"))

    def of(name: str, which: str) -> float | None:
        value = (said.get(name) or {}).get(which)
        return None if value is None else float(value)

    return Told(
        ok=int(of("request_count", "avg") or 0),
        failed=int(of("error_request_count", "avg") or 0),
        rate=of("request_throughput", "avg"),
        ttft_p50_ms=of("time_to_first_token", "p50"),
        ttft_p99_ms=of("time_to_first_token", "p99"),
        tpot_p50_ms=of("inter_token_latency", "p50"),
        tpot_p99_ms=of("inter_token_latency", "p99"),
        gap_p99_ms=of("inter_chunk_latency", "p99"),
        gap_max_ms=of("inter_chunk_latency", "max"),
        latency_p50_ms=of("request_latency", "p50"),
        latency_p90_ms=of("request_latency", "p90"),
        latency_p99_ms=of("request_latency", "p99"),
    )


def _vllm(program: Program, url: str, load: Load, folder: Path) -> list[str]:
    image = {} if load.image is None else {"image_files": [load.image]}
    lines = _write_lines(folder / "lines.jsonl", load, lambda prompt: {"prompt": prompt} | image)
    command = [
        str(program.path), "bench", "serve", "--backend", "openai-chat", "--base-url", url,
        "--endpoint", "/v1/chat/completions", "--model", "qwen", "--tokenizer", str(write_tokenizer(folder)),
        "--dataset-name", "custom_image" if image else "custom", "--dataset-path", str(lines),
        "--custom-output-len", str(TOKENS), "--skip-chat-template",
        "--request-rate", f"{load.rate:g}", "--burstiness", "inf", "--num-prompts", str(load.requests),
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99,100",
        "--save-result", "--result-dir", str(folder), "--result-filename", "result.json",
        "--disable-tqdm", "--seed", "7",
    ]  # fmt: skip
    return command + (["--max-concurrency", str(load.cap)] if load.cap else [])


def read_vllm(folder: Path) -> Told:
    """``result.json``. Its ITL is the gap between two events, whatever they hold."""
    said = json.loads((folder / "result.json").read_text("utf-8"))
    return Told(
        ok=said["completed"],
        failed=said["failed"],
        rate=said["request_throughput"],
        ttft_p50_ms=said.get("p50_ttft_ms"),
        ttft_p99_ms=said.get("p99_ttft_ms"),
        tpot_p50_ms=said.get("p50_tpot_ms"),
        tpot_p99_ms=said.get("p99_tpot_ms"),
        gap_p99_ms=said.get("p99_itl_ms"),
        gap_max_ms=said.get("p100_itl_ms"),
        latency_p50_ms=said.get("p50_e2el_ms"),
        latency_p90_ms=said.get("p90_e2el_ms"),
        latency_p99_ms=said.get("p99_e2el_ms"),
    )


def _guidellm(program: Program, url: str, load: Load, folder: Path) -> list[str]:
    image = {} if load.image is None else {"image": load.image}
    counts = {"prompt_tokens_count": 16, "output_tokens_count": TOKENS}
    lines = _write_lines(
        folder / "lines.jsonl", load, lambda prompt: {"prompt": prompt} | counts | image, repeats=False
    )
    cap = f",max_concurrency={load.cap}" if load.cap else ""
    limit = (
        f"kind=max_duration,seconds={load.seconds:g}" if load.is_timed else f"kind=max_requests,count={load.requests}"
    )
    return [
        str(program.path), "run",
        "--backend", f"kind=openai_http,target={url},model=qwen,request_format=/v1/chat/completions",
        "--profile", f"kind=constant,rate={load.rate:g}{cap}", "--constraint", limit,
        "--data", f"kind=json_file,path={lines}", "--output", f"kind=json,path={folder / 'result.json'}",
        "--disable-progress",
    ]  # fmt: skip


def read_guidellm(folder: Path) -> Told:
    """``result.json``. It keeps no gaps: its inter-token latency is a stream's mean, everyone else's TPOT."""
    (said,) = json.loads((folder / "result.json").read_text("utf-8"))["benchmarks"]
    metrics = said["metrics"]

    def of(name: str, which: str, scale: float = 1.0) -> float | None:
        column = metrics[name]["successful"]
        return column["percentiles"][which] * scale if column and column["count"] else None

    totals = metrics["request_totals"]
    return Told(
        ok=totals["successful"],
        failed=totals["errored"],
        rate=metrics["requests_per_second"]["successful"]["mean"],
        ttft_p50_ms=of("time_to_first_token_ms", "p50"),
        ttft_p99_ms=of("time_to_first_token_ms", "p99"),
        tpot_p50_ms=of("inter_token_latency_ms", "p50"),
        tpot_p99_ms=of("inter_token_latency_ms", "p99"),
        gap_p99_ms=None,
        gap_max_ms=None,
        latency_p50_ms=of("request_scheduled_latency", "p50", 1e3),
        latency_p90_ms=of("request_scheduled_latency", "p90", 1e3),
        latency_p99_ms=of("request_scheduled_latency", "p99", 1e3),
    )


PEERS: dict[str, Peer] = {
    "aiperf": Peer("AIPerf", _aiperf, read_aiperf, bears_offline=False),
    "guidellm": Peer("GuideLLM", _guidellm, read_guidellm),
    "vllm": Peer("vllm bench serve", _vllm, read_vllm),
}
