"""The gateway's spans: one for a request, one for each of its waits and calls, made when the request is over.

The only module that knows OpenTelemetry, and imported only when spans are wanted. Nothing global is set: the
provider is the application's own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Self

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from starlette.types import Scope

from vision_bench.errors import InvalidSettings
from vision_bench.gateway.exchange import Exchange
from vision_bench.gateway.journal import Journal
from vision_bench.gateway.otlp import shown
from vision_bench.gateway.span_attributes import ERROR, method_of, of_call, of_head, of_request, of_wait
from vision_bench.gateway.trace import Trace

logger = logging.getLogger(__name__)

SERVICE_NAME = "vision-bench-gateway"

FLUSH_SECONDS = 3.0
"""A stopping gateway waits so long for the collector to take what is left."""

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked every few seconds by machines: they begin no trace, and take part in one that their caller has begun."""

_NO_REASON = "unreachable or too slow"
"""What the exporter means when it gives up without a word."""

Described = tuple[tuple[str, SpanKind, Mapping[str, Any]], SpanContext, SpanContext | None, int, int]
"""Name, kind and attributes of a span; its own context and its parent's; when it began and ended, wall clock, ns."""


class Spans:
    """Makes the spans of one application and hands them to ``exporter``, in a thread of its own and in batches.

    The OTEL_* variables of the SDK (service name, resource, sampler, batches) rule. What does not fit into the queue
    is dropped, all spans of a request together.

    Leaving the block sends what is left, for at most ``FLUSH_SECONDS``.

    Args:
        collector: where the spans go, for the log.
        sampler: the environment's, when not given.

    Raises:
        InvalidSettings: an OTEL_* variable that the SDK cannot use.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        collector: str = "the exporter",
        sampler: Sampler | None = None,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        release = version("vision-bench")
        defaults = Resource.create({"service.name": SERVICE_NAME, "service.version": release})
        resource = defaults.merge(OTELResourceDetector().detect())
        provider = TracerProvider(sampler, resource=resource, shutdown_on_exit=False)
        self.sampler, self.ids, self._resource = provider.sampler, provider.id_generator, provider.resource
        self.wall_clock = wall_clock
        self._instrumentation = InstrumentationScope("vision_bench.gateway", release)
        self._collector = collector
        self._delivery = _Delivery(exporter, collector)
        try:
            self._queue_size = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or 2048)
            self._processor = BatchSpanProcessor(self._delivery, max_queue_size=self._queue_size)
        except ValueError as problem:
            raise InvalidSettings(f"the OTEL_BSP_* variables cannot be used: {problem}") from problem
        self._made = 0
        self._dropped = 0

    @classmethod
    def over_otlp(cls, endpoint: str) -> Self:
        """Post them to ``endpoint``, with headers, timeout, compression and certificates as OTEL_EXPORTER_OTLP_* say.

        Raises:
            InvalidSettings: a variable that the SDK cannot use.
        """
        try:
            exporter = OTLPSpanExporter(endpoint)
        except (ValueError, OSError) as problem:
            raise InvalidSettings(f"the OTEL_EXPORTER_OTLP_* variables cannot be used: {problem}") from problem
        return cls(exporter, collector=shown(endpoint))

    async def __aenter__(self) -> Self:
        logger.info("spans: to %s", self._collector)
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def shut_down() -> None:
            self._processor.shutdown()  # type: ignore[no-untyped-call]
            self._delivery.listen_no_more()
            with suppress(RuntimeError):  # the loop may be gone by then
                loop.call_soon_threadsafe(done.set)

        # No executor's thread: the interpreter would wait for it, for as long as the collector is silent.
        threading.Thread(target=shut_down, name="spans-flush", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await done.wait()
        if not done.is_set():
            self._delivery.shutdown()
        if lost := self._made - self._delivery.delivered:
            logger.warning("spans: %d of %d were lost", lost, self._made)

    def begin(self, exchange: Exchange, scope: Scope) -> Recording | None:
        """Decide whether this request is recorded; if so give it a journal. ``exchange.trace`` is then what vLLM gets.

        The caller's trace goes on, with its sampled flag; without one a trace begins.
        """
        caller = exchange.trace
        if caller is None and scope["path"].removeprefix(scope.get("root_path", "")) in PROBES:
            return None
        parent = None if caller is None else _context_of(caller)
        trace_id = self.ids.generate_trace_id() if parent is None else parent.trace_id
        around = Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())
        attributes = of_head(scope)
        sampled = self.sampler.should_sample(around, trace_id, _name_of(scope, None), SpanKind.SERVER, attributes)
        is_sampled = sampled.decision is Decision.RECORD_AND_SAMPLE
        if not is_sampled and caller is not None:
            return None  # its header goes on as it came
        is_random = self.ids.is_trace_id_random() if parent is None else parent.trace_flags.random_trace_id
        flags = TraceFlags(is_sampled * TraceFlags.SAMPLED | is_random * TraceFlags.RANDOM_TRACE_ID)
        context = SpanContext(trace_id, self.ids.generate_span_id(), is_remote=False, trace_flags=flags)
        headers = {} if caller is None else caller.headers
        exchange.trace = Trace(f"{trace_id:032x}", {**headers, "traceparent": _traceparent(context, context.span_id)})
        if not is_sampled:
            return None
        journal = Journal(
            exchange.request_id,
            traceparent=lambda span_id: _traceparent(context, span_id),
            make_span_id=self.ids.generate_span_id,
        )
        exchange.timings.journal = journal
        return Recording(self, exchange, scope, context, parent, {**attributes, **sampled.attributes}, journal)

    def take(self, described: Sequence[Described]) -> None:
        """The spans of one request."""
        self._made += len(described)
        if self._made - self._dropped - self._delivery.taken > self._queue_size:
            self._dropped += len(described)
            return
        for (name, kind, attributes), context, parent, start_ns, end_ns in described:
            # The SDK wants spans made by its tracer, which takes 36 us for one where this takes 3: 9 ms at the end
            # of a batch of 128, in which no other request moves.
            span = ReadableSpan(
                name,
                context,
                parent,
                self._resource,
                attributes,
                kind=kind,
                status=Status(StatusCode.ERROR if ERROR in attributes else StatusCode.UNSET),
                start_time=start_ns,
                end_time=end_ns,
                instrumentation_scope=self._instrumentation,
            )
            self._processor.on_end(span)


@dataclass(slots=True)
class Recording:
    """One request that is recorded.

    Attributes:
        context: its own span's; ``parent``: the caller's.
        attributes: what is known from its head.
        journal: where its waits and calls are written down.
    """

    spans: Spans
    exchange: Exchange
    scope: Scope
    context: SpanContext
    parent: SpanContext | None
    attributes: Mapping[str, Any]
    journal: Journal

    def end(self, route: str | None) -> None:
        """The request is over: make its spans. ``route`` is the one that answered, as a template."""
        exchange = self.exchange
        now_ns = exchange.clock()
        offset_ns = self.spans.wall_clock() - now_ns
        own = (_name_of(self.scope, route), SpanKind.SERVER, {**self.attributes, **of_request(exchange, route)})
        made: list[Described] = [(own, self.context, self.parent, exchange.began_ns + offset_ns, now_ns + offset_ns)]

        def add(described: tuple[str, SpanKind, Mapping[str, Any]], span_id: int, began_ns: int, ended_ns: int) -> None:
            context = SpanContext(self.context.trace_id, span_id, is_remote=False, trace_flags=self.context.trace_flags)
            made.append((described, context, self.context, began_ns + offset_ns, ended_ns + offset_ns))

        for wait in self.journal.waits:
            span_id = self.spans.ids.generate_span_id()
            add(("queue", SpanKind.INTERNAL, of_wait(wait)), span_id, wait.began_ns, wait.ended_ns)
        for call in self.journal.calls:
            add(("chat", SpanKind.CLIENT, of_call(call, exchange)), call.span_id, call.began_ns, call.ended_ns)
        self.spans.take(made)


class _Delivery(SpanExporter):
    """An exporter that says once that spans are lost, and once that they are taken again.

    Attributes:
        taken: spans that were given to the exporter; ``delivered``: those that it could pass on.
    """

    def __init__(self, exporter: SpanExporter, collector: str) -> None:
        self._exporter = exporter
        self._collector = collector
        self._is_shut = False
        self._has_failed = False
        self._said = _Said()
        self._theirs = logging.getLogger(type(exporter).__module__)
        self._theirs.addFilter(self._said)
        self.taken = 0
        self.delivered = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        if self._is_shut:
            return SpanExportResult.FAILURE
        self._said.begin()
        try:
            result = self._exporter.export(spans)
        except Exception as problem:  # the SDK would log a traceback for every batch
            self._said.reason = type(problem).__name__
            result = SpanExportResult.FAILURE
        finally:
            self._said.end()
        if result is SpanExportResult.SUCCESS:
            self.delivered += len(spans)
        if self._has_failed is not (result is not SpanExportResult.SUCCESS):
            self._has_failed = not self._has_failed
            if self._has_failed:
                logger.warning("spans: %s does not take them (%s); requests go on", self._collector, self._said.reason)
            else:
                lost = self.taken - self.delivered
                logger.warning("spans: %s takes them again; %d were lost", self._collector, lost)
        return result

    def shutdown(self) -> None:
        if not self._is_shut:
            self._is_shut = True
            self._exporter.shutdown()  # ends its waits between two tries

    def listen_no_more(self) -> None:
        """Nothing is being exported any more."""
        self._theirs.removeFilter(self._said)


class _Said(logging.Filter):
    """Keeps back what the exporter logs while it works for us, and keeps the reason."""

    def __init__(self) -> None:
        super().__init__()
        self._thread: int | None = None
        self.reason = _NO_REASON

    def begin(self) -> None:
        self._thread = threading.get_ident()
        self.reason = _NO_REASON

    def end(self) -> None:
        self._thread = None

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        # Not the message: a URL in it may hold a key.
        for value in record.args if isinstance(record.args, tuple) else ():
            if isinstance(value, Exception):
                self.reason = type(value).__name__
            elif isinstance(value, int):
                self.reason = f"status {value}"
        return False


def _name_of(scope: Scope, route: str | None) -> str:
    method = method_of(scope).replace("_OTHER", "HTTP")
    return f"{method} {route}" if route else method


def _traceparent(context: SpanContext, span_id: int) -> str:
    return f"00-{context.trace_id:032x}-{span_id:016x}-{context.trace_flags:02x}"


def _context_of(caller: Trace) -> SpanContext:
    _, trace_id, span_id, flags = caller.headers["traceparent"].split("-")[:4]
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
