"""``POST /v1/chat/completions``: parse, prepare, queue, answer whole or as a stream; stop when the client leaves."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from uuid import uuid4

from starlette.types import Receive, Scope, Send

from vision_bench.engine.chat.admission import Slots
from vision_bench.engine.chat.answering import Answering, Piece
from vision_bench.engine.chat.body import read_body
from vision_bench.engine.chat.errors import BrokenAnswer, ConnectionCut, body_of, busy, input_too_long, internal_error
from vision_bench.engine.chat.exchange import ClientLeft, Exchange, header, read_whole_body, until_client_leaves
from vision_bench.engine.chat.metrics import EngineMetrics
from vision_bench.engine.chat.model import BadChatRequest, ChatModel
from vision_bench.engine.chat.parse import parse_chat
from vision_bench.engine.chat.replies import Choice, ReplyHead, request_metrics
from vision_bench.engine.chat.settings import EngineSettings
from vision_bench.engine.chat.streaming import StreamedAnswer
from vision_bench.engine.chat.truth import Timeline, TruthLog
from vision_bench.errors import InvalidMedia

logger = logging.getLogger(__name__)

STOPPED = "EngineCore encountered an issue. See stack trace (above) for the root cause."
"""What vLLM says inside a stream when it is stopped under it."""


class ChatRoute:
    """The one route that does work. ``in_flight`` counts requests between their body and their last byte."""

    def __init__(
        self,
        model: ChatModel,
        settings: EngineSettings,
        *,
        slots: Slots,
        metrics: EngineMetrics,
        truth: TruthLog,
        knows_model: Callable[[str], bool],
    ) -> None:
        self._model = model
        self._settings = settings
        self._slots = slots
        self._metrics = metrics
        self._truth = truth
        self._knows_model = knows_model
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            data = await read_whole_body(receive)
        except ClientLeft:
            return
        timeline = Timeline(header(scope, b"x-request-id") or uuid4().hex[:16], "", False, time.monotonic_ns())
        self.in_flight += 1
        try:
            await self._until_answered_or_left(data, header(scope, b"content-type"), receive, Exchange(send), timeline)
        finally:
            self.in_flight -= 1
            self._truth.add(timeline)

    async def _until_answered_or_left(
        self, data: bytes, content_type: str | None, receive: Receive, exchange: Exchange, timeline: Timeline
    ) -> None:
        work = asyncio.create_task(self._answer(data, content_type, exchange, timeline))
        watch = asyncio.create_task(until_client_leaves(receive))
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                timeline.outcome = "client_left"
        except asyncio.CancelledError:  # the server is stopping
            timeline.outcome = "server_stopped"
            raise
        finally:
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)
        if not work.cancelled():
            work.result()

    async def _answer(self, data: bytes, content_type: str | None, exchange: Exchange, timeline: Timeline) -> None:
        try:
            await self._try_to_answer(data, content_type, exchange, timeline)
        except (BadChatRequest, InvalidMedia) as problem:
            refusal = problem if isinstance(problem, BadChatRequest) else BadChatRequest(str(problem))
            await self._refuse(exchange, refusal, timeline)
        except BrokenAnswer as problem:
            timeline.outcome = "broken"
            await self._break(exchange, problem, timeline)
        except asyncio.CancelledError:
            if timeline.outcome == "server_stopped" and exchange.started:
                await _error_event(exchange, STOPPED)
            raise
        except ConnectionCut:
            raise
        except Exception as problem:
            logger.exception("request %s failed", timeline.request_id)
            timeline.outcome = "broken"
            await self._fail(exchange, str(problem), timeline)

    async def _try_to_answer(
        self, data: bytes, content_type: str | None, exchange: Exchange, timeline: Timeline
    ) -> None:
        settings = self._settings
        body = read_body(data, content_type)
        if isinstance(body.get("request_id"), str):
            timeline.request_id = body["request_id"]
        request = parse_chat(
            body,
            settings=settings,
            request_id=timeline.request_id,
            arrived_ns=timeline.arrived_ns,
            knows_model=self._knows_model,
        )
        timeline.model, timeline.stream = request.model, request.stream
        prepared = await self._model.prepare(request)
        timeline.prepared_ns = time.monotonic_ns()
        timeline.stages_ms, timeline.prompt_tokens = prepared.stages_ms, prepared.prompt_tokens
        room = settings.max_model_len - prepared.prompt_tokens
        if room < 1:
            raise input_too_long(prepared.prompt_tokens, settings.max_model_len, has_media=bool(request.media))
        if self._slots.is_full:
            self._metrics.count("vllm:admission_rejections", reason="max_num_queued_reqs")
            raise busy()
        limit = min(request.max_tokens, room)
        answering = Answering(self._model, request, prepared, self._slots, self._metrics, timeline, limit)
        head = ReplyHead(f"chatcmpl-{request.request_id}", int(time.time()), request.model)
        if request.stream:
            await StreamedAnswer(answering, head, exchange, settings).run()
        else:
            await self._whole(answering, head, exchange)
        self._record(answering)

    async def _whole(self, answering: Answering, head: ReplyHead, exchange: Exchange) -> None:
        texts: list[list[str]] = [[] for _ in range(answering.request.n)]
        choices: list[Choice] = []

        async def keep(piece: Piece) -> None:
            texts[piece.index].append(piece.text)
            if piece.finish_reason is not None:
                text = "".join(texts[piece.index])
                choices.append(Choice(piece.index, text, piece.finish_reason, piece.stop_reason, piece.count))

        try:
            await answering.run(keep)
        except BrokenAnswer as problem:
            if problem.how == "truncate":
                said = [Choice(0, "".join(texts[0]), "length", None, len(texts[0]))]
                await exchange.half(head.completion(said, answering.prepared, None))
            raise
        choices.sort(key=lambda choice: choice.index)
        is_told = self._settings.tells_metrics(answering.request.n)
        metrics = request_metrics(answering.timeline) if is_told else None
        await exchange.json(200, head.completion(choices, answering.prepared, metrics))

    async def _refuse(self, exchange: Exchange, problem: BadChatRequest, timeline: Timeline) -> None:
        timeline.outcome = "http_error"
        if exchange.started:  # a model that refuses after its stream began: nothing but an event can tell
            await _error_event(exchange, problem.message)
            return
        timeline.status = problem.status
        await exchange.json(problem.status, body_of(problem))
        self._close_after_500(problem.status)

    async def _break(self, exchange: Exchange, problem: BrokenAnswer, timeline: Timeline) -> None:
        if problem.how == "truncate":
            raise ConnectionCut(str(problem))
        await self._fail(exchange, str(problem), timeline)

    async def _fail(self, exchange: Exchange, message: str, timeline: Timeline) -> None:
        """An error event in a stream that has begun, a 500 otherwise."""
        if exchange.started:
            await _error_event(exchange, message)
            return
        timeline.status = 500
        await exchange.json(500, internal_error(message))
        self._close_after_500(500)

    def _close_after_500(self, status: int) -> None:
        if status == 500 and self._settings.close_after_500:
            raise ConnectionCut("vLLM closes the connection after a 500 without saying so")

    def _record(self, answering: Answering) -> None:
        """Count a finished request into the histograms."""
        timeline, request, metrics = answering.timeline, answering.request, self._metrics
        prompt_tokens = answering.prepared.prompt_tokens
        metrics.count("vllm:prompt_tokens", prompt_tokens)
        metrics.count("vllm:prompt_tokens_by_source", prompt_tokens, source="local_compute")
        metrics.count("vllm:request_success", finished_reason=timeline.finish_reason or "error")
        metrics.observe("vllm:request_prompt_tokens", prompt_tokens)
        metrics.observe("vllm:request_generation_tokens", timeline.tokens)
        metrics.observe("vllm:request_params_n", request.n)
        metrics.observe("vllm:request_params_max_tokens", answering.token_limit)
        for name, value_ms in (
            ("time_to_first_token", timeline.ttft_ms),
            ("request_time_per_output_token", timeline.tpot_ms),
            ("e2e_request_latency", timeline.e2e_ms),
            ("request_queue_time", timeline.queue_ms),
            ("request_inference_time", timeline.inference_ms),
            ("request_prefill_time", timeline.prefill_ms),
            ("request_decode_time", timeline.decode_ms),
        ):
            metrics.observe(f"vllm:{name}_seconds", None if value_ms is None else value_ms / 1e3)


async def _error_event(exchange: Exchange, message: str) -> None:
    await exchange.event(internal_error(message))
    await exchange.done()
