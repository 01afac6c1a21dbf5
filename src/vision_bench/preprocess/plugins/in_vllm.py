"""vLLM's plugin: installed beside vLLM, it is on. ``VISION_BENCH_PREPROCESS=off`` turns it off.

vLLM calls :func:`register` in each process that it starts. Requests are preprocessed in its API server (or in the
program that made an ``LLM``); there ours is switched on, and compiled by the warm-up that vLLM does before it answers.
Engines and workers preprocess nothing but the dummy that they measure memory with, and are left alone.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

from vision_bench.errors import InvalidSettings, VisionBenchError
from vision_bench.preprocess.plugins import in_transformers, methods
from vision_bench.preprocess.plugins.work import Work

SWITCH = "VISION_BENCH_PREPROCESS"
THREADS = "VISION_BENCH_PREPROCESS_THREADS"
CACHE = "VISION_BENCH_PREPROCESS_CACHE_MB"

CALLER = "vllm.multimodal.processing.context"
"""Where vLLM calls a processor and casts what comes out."""

ENGINES = ("EngineCore", "VllmWorker", "DPEngineCore")
"""How vLLM names the processes that preprocess no requests."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the environment says."""

    is_on: bool = True
    threads: int = 1
    cache_megabytes: int = 0

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """From the variables above.

        Raises:
            InvalidSettings: a value that means nothing.
        """
        switch = environ.get(SWITCH, "on").strip().lower()
        if switch not in {"on", "off"}:
            raise InvalidSettings(f"{SWITCH} is {environ[SWITCH]!r}; it is on or off")
        return cls(switch == "on", _whole(environ, THREADS, 1), _whole(environ, CACHE, 0))


def _whole(environ: Mapping[str, str], name: str, least: int) -> int:
    """A variable that is a whole number; ``least`` where it is not set."""
    text = environ.get(name, str(least)).strip()
    if not text.isdecimal() or int(text) < least:
        raise InvalidSettings(f"{name} is {text!r}; it is a whole number of {least} or more")
    return int(text)


def register() -> None:
    """What the entry point names. Says in one line what it did; a server never fails to start because of it."""
    if multiprocessing.current_process().name.startswith(ENGINES):
        return
    # Below vLLM's own logger, whose handlers print it.
    log = logging.getLogger("vllm.vision_bench")
    with heard(log):
        try:
            log.info("preprocessing with vision-bench: %s", switch_on(Options.read(os.environ), log))
        except (VisionBenchError, ImportError, AttributeError) as problem:
            log.warning("preprocessing with vision-bench: off, the stock processors stay: %s", problem)


def write_the_models_dtype(work: Work) -> None:
    """Write bfloat16 at once where vLLM would round float32 to it: the same bits, and 80 MB less to move for a clip."""
    try:
        caller = import_module(CALLER).InputProcessingContext
        methods.restore(caller)
        methods.replace(caller, "call_hf_processor", rounding(work))
    except (ImportError, AttributeError):
        return  # another vLLM, which rounds as before


def rounding(work: Work) -> Callable[[methods.Method], methods.Method]:
    """Around vLLM's call of a processor, whose results it casts to the model's dtype."""

    def make(original: methods.Method) -> methods.Method:
        def call_hf_processor(self: Any, *arguments: Any, **options: Any) -> Any:
            if str(self.model_config.dtype) != "torch.bfloat16":
                return original(self, *arguments, **options)
            with work.rounding():
                return original(self, *arguments, **options)

        return call_hf_processor

    return make


@contextmanager
def heard(log: logging.Logger) -> Iterator[None]:
    """What is logged is printed, although `vllm serve` calls its plugins before it sets up its own logging."""
    if log.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


def switch_on(options: Options, log: logging.Logger) -> str:
    """Do as the options say; returns what was done, in words."""
    if not options.is_on:
        return f"off, as {SWITCH} says"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reason goes into the line that is logged
        on = in_transformers.install(threads=options.threads, cache_bytes=options.cache_megabytes * 1_000_000, log=log)
    if on.reason is not None:
        return f"off, the stock processors stay: {on.reason}"
    # A forked engine inherits what its parent switched on, but neither its threads nor a compiler it can trust.
    os.register_at_fork(after_in_child=in_transformers.uninstall)
    if on.work is not None:
        write_the_models_dtype(on.work)
    kept = f", {options.cache_megabytes} MB of tubelets kept" if options.cache_megabytes else ""
    return f"on for Qwen's processors, {options.threads} thread(s) a call{kept}; {SWITCH}=off turns it off"
