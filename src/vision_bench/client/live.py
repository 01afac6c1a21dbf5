"""LiveClient: a gateway's live streams. Create one, publish into it, ask about it, watch it.

Calls are retried by ``live_rules``, with jitter, out of one budget for the whole client. Nothing is retried once an
answer has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from vision_bench.client.caller import Caller, transport_errors
from vision_bench.client.gateway import ChatStream, encode_body, media_type
from vision_bench.client.live_answer import AnswerStream, LiveAnswer
from vision_bench.client.live_film import Published, send_film
from vision_bench.client.live_half import ClientHalf
from vision_bench.client.live_question import LiveQuestion
from vision_bench.client.live_rules import ASK, CREATE, KEEP_ALIVE, LOOK, Unavailable, is_fatal, is_unavailable
from vision_bench.client.live_watch import Seen, watch
from vision_bench.client.retry import RetryBudget, RetryRule
from vision_bench.errors import BrokenStream, HttpFailure, UpstreamError
from vision_bench.live.joining import ServerClock
from vision_bench.wire import sse
from vision_bench.wire.chat import Json, error_message
from vision_bench.wire.shapes import parse_json

DEFAULT_URL = "http://127.0.0.1:8001"
DEFAULT_TIMEOUT_SECONDS = 930.0
"""Between two bytes of an answer, as the gateway's own bounds add up."""
POLL_SECONDS = 2.0
"""Between two looks at the list of models while one is waited for: the gateway's list is no younger."""
_ASK_PATH = "/v1beta/chat/completions"


class LiveStream:
    """A stream that is kept alive.

    Attributes:
        publish: where to send video and with which token, renewed by each keepalive; None for a pulled stream.
        failure: why it is kept alive no more; None while it is.
    """

    def __init__(self, created: Json) -> None:
        self.id: str = created["id"]
        self.ttl_seconds: float = created["ttl_seconds"]
        self.publish: Json | None = created.get("publish")
        self.failure: HttpFailure | None = None


class LiveClient:
    """Async client of a gateway with ``LIVE_ENABLED``. Use it as ``async with``; share it between tasks.

    Args:
        url: the gateway's root.
        api_key: sent as a bearer token; never logged.
        timeout_seconds: longest silence between two bytes of an answer.
        budget: of retries, shared by all calls.
        transport: a stand-in for the network, for tests.
        draw: source of jitter; seed it for repeatable waits.
        clock: monotonic, ns.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        budget: RetryBudget | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        draw: random.Random | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._caller = Caller(
            url.rstrip("/").removesuffix("/v1"),
            timeout_seconds=timeout_seconds,
            budget=budget,
            api_key=api_key,
            transport=transport,
            draw=draw,
        )
        self._clock = clock
        self.clock_id = f"client-{secrets.token_hex(4)}"
        self._server = ServerClock(self.clock_id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        await self._caller.close()

    async def models(self) -> dict[str, str]:
        """Each model's state: ready, saturated, degraded or unavailable."""
        listed = (await self._told("GET", "/v1beta/models", LOOK)).get("data")
        cards = [card for card in listed if isinstance(card, dict)] if isinstance(listed, list) else []
        return {str(card.get("id")): _state(card) for card in cards}

    async def create(self, source: Json | None = None) -> Json:
        """A new stream: ``id``, ``ttl_seconds``, ``publish``, as the gateway tells them.

        Args:
            source: ``{"type": "rtsp", "url": …}`` for one that the gateway pulls; None for one to publish into.

        Raises:
            ConnectFailed, UpstreamTimeout, HttpFailure, BrokenStream: as of all calls here, after the retries.
        """
        body = None if source is None else encode_body({"source": source})
        try:
            created = await self._told("POST", "/v1beta/streams", CREATE, body)
        except HttpFailure as problem:
            if problem.status != 404:
                raise
            raise BrokenStream(f"{self._caller.url} has no live streams; is it a gateway with LIVE_ENABLED?") from None
        if not (isinstance(created.get("id"), str) and isinstance(created.get("ttl_seconds"), int | float)):
            raise BrokenStream("the new stream has no id or no ttl_seconds; is this a gateway with LIVE_ENABLED?")
        return created

    async def state(self, stream_id: str) -> Json:
        """The stream's state: its lease, its clock, the frames that are held."""
        return await self._told("GET", f"/v1beta/streams/{stream_id}", LOOK)

    async def keep_alive(self, stream_id: str) -> Json:
        """A whole lease from now, and a fresh publish token."""
        return await self._told("POST", f"/v1beta/streams/{stream_id}/keepalive", KEEP_ALIVE)

    async def delete(self, stream_id: str) -> None:
        """End the stream. Again, and nothing happens."""
        await self._told("DELETE", f"/v1beta/streams/{stream_id}", LOOK)

    @contextlib.asynccontextmanager
    async def stream(self, source: Json | None = None, *, keep: bool = False) -> AsyncIterator[LiveStream]:
        """A stream for the length of a block: created, kept alive every third of its lease, deleted.

        Args:
            source: as of ``create``.
            keep: leave it to its lease at the end.
        """
        stream = LiveStream(await self.create(source))
        alive = asyncio.create_task(self._kept_alive(stream))
        try:
            yield stream
        finally:
            alive.cancel()
            await asyncio.gather(alive, return_exceptions=True)
            if not keep:
                await asyncio.shield(self._deleted(stream.id))

    async def publish(
        self,
        stream: LiveStream,
        film: Path,
        *,
        max_fps: float | None = None,
        rounds: int | None = 1,
        on_picture: Callable[[Published], None] = lambda so_far: None,
    ) -> Published:
        """Send ``film`` into ``stream`` at its own pace; its pictures are stamped on this client's clock.

        Args:
            rounds: how often it is shown; None: until it is cancelled or the stream ends.

        Raises:
            InvalidMedia: the film holds no pictures.
            ConnectFailed, UpstreamTimeout, BrokenStream: the gateway cannot be reached, or ends the connection.
        """
        if stream.publish is None:
            raise BrokenStream(f"stream {stream.id} is pulled by the gateway; nothing can be published into it")
        published = Published(stream.id)
        await send_film(
            film,
            published,
            stream.publish,
            gateway=self._caller.url,
            max_fps=max_fps,
            rounds=rounds,
            clock=self.clock_id,
            on_picture=on_picture,
        )
        return published

    async def ask(self, stream_id: str, question: LiveQuestion) -> LiveAnswer:
        """Ask, and wait for the whole answer. Raises as ``asking`` does, and as its iteration does."""
        async with self.asking(stream_id, question) as answer:
            async for _ in answer:
                pass
        return answer.answer

    @contextlib.asynccontextmanager
    async def asking(self, stream_id: str, question: LiveQuestion) -> AsyncIterator[AnswerStream]:
        """Ask, and read the answer as it comes; leaving the block ends the call wherever it is.

        Raises:
            ConnectFailed, UpstreamTimeout, HttpFailure: after the retries; ``live_rules.code_of`` tells the code.
            BrokenStream: no stream of events; the iteration raises it for one that breaks off or tells an error.
        """
        half = ClientHalf(self._clock)
        model = question.model
        async with contextlib.AsyncExitStack() as stack:
            try:
                response = await stack.enter_async_context(self._events(question.body(stream_id, model=model), half))
            except HttpFailure as problem:
                if not is_unavailable(problem):
                    raise
                model = await self._instead_of(model, question.unavailable, problem)
                response = await stack.enter_async_context(self._events(question.body(stream_id, model=model), half))
            yield AnswerStream(
                ChatStream(response, clock=self._clock),
                question.asked,
                half=half,
                server=self._server,
                clock=self._clock,
                model=model,
            )

    def watch(self, stream_id: str, question: LiveQuestion, *, every_seconds: float) -> AsyncGenerator[Seen, None]:
        """Ask every ``every_seconds``: never two at once, none made up for, until a failure that will not pass.

        Whoever leaves early wraps it in ``contextlib.aclosing``.
        """
        return watch(lambda: self.ask(stream_id, question), every_seconds=every_seconds)

    @contextlib.asynccontextmanager
    async def _events(self, body: Json, half: ClientHalf) -> AsyncIterator[httpx.Response]:
        headers = {"Content-Type": "application/json"}
        content = encode_body(body)
        call = self._caller.open("POST", _ASK_PATH, rule=ASK, content=content, headers=headers, on_try=half.sent)
        async with call as response:
            if media_type(response) != sse.MEDIA_TYPE:
                detail = error_message(await response.aread())[:200]
                raise BrokenStream(f"asked for a stream, got {media_type(response) or 'no type'}: {detail}")
            yield response

    async def _instead_of(self, model: str, unavailable: Unavailable, problem: HttpFailure) -> str:
        """The model to ask now.

        Raises:
            HttpFailure: ``problem``, when there is none.
        """
        if unavailable.do == "wait":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(unavailable.wait_seconds):
                    while True:
                        await asyncio.sleep(POLL_SECONDS)
                        if await self._is_ready(model):
                            return model
        elif unavailable.model is not None and await self._is_ready(unavailable.model):
            return unavailable.model
        raise problem

    async def _is_ready(self, model: str) -> bool:
        with contextlib.suppress(UpstreamError):
            return (await self.models()).get(model) in ("ready", "degraded")
        return False

    async def _told(self, method: str, path: str, rule: RetryRule, content: bytes | None = None) -> Json:
        headers = {"Content-Type": "application/json"} if content is not None else None
        async with self._caller.open(method, path, rule=rule, content=content, headers=headers) as response:
            with transport_errors(self._caller.url):
                data = await response.aread()
        try:
            told = parse_json(data)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise BrokenStream(f"{path} answers HTTP {response.status_code} that is no JSON object")
        return told

    async def _kept_alive(self, stream: LiveStream) -> None:
        while True:
            await asyncio.sleep(stream.ttl_seconds / 3)
            try:
                told = await self.keep_alive(stream.id)
            except HttpFailure as problem:
                if is_fatal(problem):  # it is gone
                    stream.failure = problem
                    return
            except UpstreamError:
                continue  # the lease has a good part left
            else:
                stream.ttl_seconds = told.get("ttl_seconds", stream.ttl_seconds)
                stream.publish = told.get("publish", stream.publish)

    async def _deleted(self, stream_id: str) -> None:
        with contextlib.suppress(UpstreamError):  # its lease ends it
            await self.delete(stream_id)


def _state(card: Json) -> str:
    extension = card.get("vision_bench")
    state = extension.get("state") if isinstance(extension, dict) else None
    return str(state or card.get("status") or "ready")
