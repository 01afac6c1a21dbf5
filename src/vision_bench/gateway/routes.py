"""The routes that work: /healthz, /chat (OpenAI's name for it too), /chat/batch."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Protocol

from fastapi import APIRouter, Request
from starlette.datastructures import State
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vision_bench.errors import AcquireTimeout, HttpFailure, UpstreamError
from vision_bench.gateway import examples
from vision_bench.gateway.ahead import Ahead
from vision_bench.gateway.batch import BatchRun
from vision_bench.gateway.exchange import (
    Refusal,
    exchange_of,
    head_bytes,
    head_too_long,
    header,
    refusal_of,
    refuse,
    send_whole,
    start_message,
    unless_client_leaves,
)
from vision_bench.gateway.items import ItemReader
from vision_bench.gateway.keys import allowance_of
from vision_bench.gateway.media_policy import MediaPolicy
from vision_bench.gateway.room import Buffer, Pace, Room
from vision_bench.gateway.settings import Settings
from vision_bench.gateway.upload import Upload, declared_bytes
from vision_bench.gateway.upstream import Answer, VLLMClient
from vision_bench.wire.chat import error_body
from vision_bench.wire.ndjson import MEDIA_TYPE
from vision_bench.wire.sse import encode_event

router = APIRouter()

LIVE_CHAT_PATH = "/v1beta/chat/completions"

# Answer headers that go on to the caller; the rest describes the connection to vLLM, not the answer.
_PASSED_HEADERS = ("Content-Type", "Content-Encoding", "Retry-After")

# nginx and its like gather an answer before they send it on, unless told not to.
_UNBUFFERED = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache"}


@router.get("/healthz", summary="Is the gateway up?", responses=examples.HEALTHZ)
async def healthz() -> Response:
    """200 as soon as the gateway has started. vLLM is never asked."""
    return JSONResponse({"ok": True})


@router.post(
    "/v1/chat/completions",
    summary="/chat under OpenAI's name",
    openapi_extra=examples.CHAT_REQUEST,
    responses=examples.CHAT,
)
@router.post("/chat", summary="One chat body to vLLM", openapi_extra=examples.CHAT_REQUEST, responses=examples.CHAT)
async def chat(request: Request) -> Response:
    """Passes the body to vLLM's /v1/chat/completions and its answer back, both byte for byte.

    `stream: true` works: events come as vLLM sends them.
    """
    return _Chat(request.app.state)


@router.post(
    "/chat/batch",
    summary="Many chat bodies, one NDJSON line each as they finish",
    openapi_extra=examples.BATCH_REQUEST,
    response_class=Response,  # FastAPI would document JSON beside the lines
    responses=examples.BATCH,
)
async def chat_batch(request: Request) -> Response:
    """Sends every item's body to vLLM and streams one line an item, in the order in which they finish.

    Match lines by `id`. A failed item is a line with `error`; the others go on.
    """
    return _Batch(request.app.state)


PassOn = Callable[[list[bytes], Scope, Send], Awaitable[None]]


class Question(Protocol):
    """A body that needs more than to be passed on: live_questions has them."""

    async def answer(self, scope: Scope, send: Send, pass_on: PassOn) -> None:
        """Make the body that is passed on, and change what ``pass_on`` sends."""


class Questions(Protocol):
    """Finds them."""

    def of(self, body: Sequence[bytes], scope: Scope) -> Question | None:
        """The question that ``body`` is; None: it goes on as it is."""


class _Exchange(Response):
    """A response that is the whole of the request's life: one coroutine holds the permit and knows both ends."""

    def __init__(self, state: State) -> None:
        self._settings: Settings = state.settings
        self._client: VLLMClient = state.vllm
        self._buffer: Buffer = state.buffer
        self._pace: Pace = state.pace
        self._policy: MediaPolicy | None = state.media_policy
        self._questions: Questions | None = state.questions
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit_bytes = self._settings.gateway_max_body_bytes
        upload = Upload(
            receive,
            self._pace,
            limit_bytes=limit_bytes,
            idle_seconds=self._settings.gateway_upload_idle_seconds,
            timeout_seconds=self._settings.gateway_upload_timeout_seconds,
        )
        exchange = exchange_of(scope)
        timings = exchange.timings
        try:
            size_bytes = declared_bytes(scope, limit_bytes=limit_bytes)
            async with self._buffer.room(size_bytes, timings) as room:
                await self.answer(upload, room, scope, receive, send)
        except Refusal as refusal:
            await refuse(scope, receive, send, refusal, body_unread=not upload.is_whole)
        except AcquireTimeout as problem:
            exchange.call_ended(timings)
            await refuse(scope, receive, send, refusal_of(problem), body_unread=True)
        finally:
            exchange.body_bytes = upload.size_bytes

    async def answer(self, upload: Upload, room: Room, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body and answer the request, or raise Refusal before anything was sent."""
        raise NotImplementedError

    def authorization(self, scope: Scope) -> str | None:
        """The caller's own header, unless it holds a key of this gateway."""
        return None if self._settings.gateway_api_keys else header(scope, b"authorization")


class _Chat(_Exchange):
    async def answer(self, upload: Upload, room: Room, scope: Scope, receive: Receive, send: Send) -> None:
        ahead = self._ahead(room, scope)
        try:
            body = await upload.read(ahead)
            question = None if self._questions is None else self._questions.of(body, scope)
            if question is None and self._policy is not None:
                body = [b"".join(body)]
                self._policy.check(body[0])
            exchange_of(scope).is_read = True
            room.shrink(upload.size_bytes)
            if question is None:
                work = self._pass_on(body, scope, send, ahead)
            else:
                work = question.answer(scope, send, self._pass_on)
            await unless_client_leaves(receive, work)
        finally:
            if ahead is not None:
                ahead.close()

    def _ahead(self, room: Room, scope: Scope) -> Ahead | None:
        """Sends the body on while it comes: for a caller who is alone, and where nobody has to look at it first."""
        exchange = exchange_of(scope)
        is_alone = self._buffer.held_bytes == room.size_bytes
        # A span of the call, whose name its head holds, begins with the permit.
        is_traced = exchange.timings.journal is not None
        is_looked_at = self._questions is not None or self._policy is not None
        is_of_known_length = header(scope, b"content-length") and not header(scope, b"transfer-encoding")
        if not is_alone or is_traced or is_looked_at or not is_of_known_length:
            return None
        return self._client.ahead(
            room.size_bytes,
            request_id=exchange.request_id,
            content_type=_content_type(scope),
            authorization=self.authorization(scope),
            trace=exchange.trace,
        )

    async def _pass_on(self, body: list[bytes], scope: Scope, send: Send, ahead: Ahead | None = None) -> None:
        exchange = exchange_of(scope)
        timings = exchange.timings
        exchange.items = 1
        has_started = False
        is_event_stream = False
        try:
            async with self._client.chat(
                body,
                request_id=exchange.request_id,
                timings=timings,
                content_type=_content_type(scope),
                authorization=self.authorization(scope),
                trace=exchange.trace,
                ahead=ahead,
            ) as answer:
                is_event_stream = answer.is_event_stream
                if answer.status >= 400:
                    exchange.outcome = HttpFailure.outcome
                headers = _answer_headers(answer)
                if not answer.is_whole:
                    timings.upstream_ms = answer.elapsed_ms()  # for Server-Timing
                    if is_event_stream:
                        headers |= _UNBUFFERED
                    await send(start_message(answer.status, headers))
                    has_started = True
                    if is_event_stream:
                        exchange.stream_begins()
                    await send({"type": "http.response.body", "body": answer.held, "more_body": True})
                    async for chunk in answer.chunks():
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except UpstreamError as problem:
            refusal = refusal_of(problem)
            if not has_started:
                raise refusal from problem
            exchange.outcome = refusal.type
            if is_event_stream:
                # The blank line ends an event that was cut in the middle.
                event = encode_event(json.dumps(error_body(str(problem), type=refusal.type, code=refusal.status)))
                await send({"type": "http.response.body", "body": b"\n\n" + event, "more_body": True})
            # Returning without the last message makes the server cut the connection: no caller can take this for
            # a whole answer.
            return
        finally:
            exchange.call_ended(timings)
        if has_started:
            await send({"type": "http.response.body", "body": b""})
        else:
            await send_whole(send, answer.status, headers, answer.held)


class _Batch(_Exchange):
    async def answer(self, upload: Upload, room: Room, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope)
        allowance = allowance_of(scope)
        reserved_bytes = room.size_bytes
        reader = ItemReader(max_items=self._settings.max_batch_items)
        run = BatchRun(
            self._client, exchange, authorization=self.authorization(scope), queue_ms=exchange.timings.queue_ms
        )
        async with run:
            with upload:
                while piece := await upload.next_piece():
                    for item in reader.feed(piece):
                        if allowance is not None and run.count:
                            allowance.take_for_batch()
                        if self._policy is not None:
                            self._policy.check(bytes(item.body), place=f"items[{run.count}].body.")
                        run.start(item).add_done_callback(_gives_back(room, len(memoryview(item.body))))
            count = reader.close()
            exchange.is_read = True
            room.free(reserved_bytes - upload.size_bytes)
            exchange.items, exchange.failed = count, exchange.failed or 0
            await unless_client_leaves(receive, self._send_lines(run, count, send))

    async def _send_lines(self, run: BatchRun, count: int, send: Send) -> None:
        headers = {"Content-Type": MEDIA_TYPE, "X-Batch-Total": str(count), **_UNBUFFERED}
        await send(start_message(200, headers))

        async def emit(line: bytes) -> None:
            await send({"type": "http.response.body", "body": line, "more_body": True})

        await run.emit_lines(emit)
        await send({"type": "http.response.body", "body": b""})


def _gives_back(room: Room, size_bytes: int) -> Callable[[object], None]:
    return lambda _: room.free(size_bytes)


class DirectRoutes:
    """The routes that carry clips, without FastAPI.

    They stand in the router too, which documents them, and answers whatever else is asked of their paths.
    """

    _ROUTES: ClassVar = {"/chat": _Chat, "/chat/batch": _Batch, "/v1/chat/completions": _Chat}

    @classmethod
    def made(cls, state: State) -> dict[str, ASGIApp]:
        """The routes by their paths, when everything that they need is in ``state``."""
        routes = cls._ROUTES if state.questions is None else {**cls._ROUTES, LIVE_CHAT_PATH: _Chat}
        return {path: route(state) for path, route in routes.items()}

    def __init__(self, app: ASGIApp, state: State, *, head_limit_bytes: int, live: bool = False) -> None:
        self._app = app
        self._paths = {*self._ROUTES, *([LIVE_CHAT_PATH] if live else [])}
        self._state = state
        self._head_limit_bytes = head_limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Where uvicorn runs without our protocol, which refuses such a head before it has come.
        if scope["type"] == "http" and head_bytes(scope) > self._head_limit_bytes:
            await refuse(scope, receive, send, head_too_long(self._head_limit_bytes), body_unread=True)
            return
        if scope["type"] == "http" and scope["method"] == "POST":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            if path in self._paths:
                exchange_of(scope).route = path
                await self._state.routes[path](scope, receive, send)
                return
        await self._app(scope, receive, send)


def _content_type(scope: Scope) -> str:
    return header(scope, b"content-type") or "application/json"


def _answer_headers(answer: Answer) -> dict[str, str]:
    given = {name: answer.headers.get(name) for name in _PASSED_HEADERS}
    # A value with other letters is left out: no server could write it down, and the caller would get nothing at all.
    return {name: value for name, value in given.items() if value and value.isascii() and value.isprintable()}
