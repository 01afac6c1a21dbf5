"""Questions about streams, on the chat routes: frames are chosen, put into the body, and told of in the answer.

The call itself is /chat's own, with its permits, limits and failures: here its body is made, and what it sends is read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from starlette.datastructures import State
from starlette.types import Message, Scope, Send

from vision_bench.gateway.exchange import Exchange, Refusal, exchange_of, start_message
from vision_bench.gateway.keys import owner_of
from vision_bench.gateway.live_models import Models
from vision_bench.gateway.live_server import LiveServer
from vision_bench.gateway.live_shapes import InvalidBody, is_ours
from vision_bench.gateway.live_threads import place_of
from vision_bench.live.answers import ReceiptStream, with_receipt
from vision_bench.live.clocks import Offset
from vision_bench.live.failures import StreamFailure
from vision_bench.live.questions import Slot, encoded_bytes, may_ask, put_pictures, references
from vision_bench.live.receipt import (
    Receipt,
    cache_of,
    chosen_frame,
    receipt_bodies,
    reported_of,
    visual_tokens_of,
)
from vision_bench.live.ring import Frame
from vision_bench.live.selection import select_in_time
from vision_bench.live.shapes import Json
from vision_bench.wire.shapes import parse_json

PassOn = Callable[[list[bytes], Scope, Send], Awaitable[None]]

_ROLES = ("system", "developer", "user", "assistant", "tool")
THREAD_LETTERS = 256


class Questions:
    """What the chat route asks about each body."""

    def __init__(self, state: State) -> None:
        self._state = state

    def of(self, body: Sequence[bytes], scope: Scope) -> Question | None:
        """The question in ``body``; None for one that goes on as it is.

        Raises:
            Refusal: 422, a body of another shape than the API's, below /v1beta alone.
        """
        live: LiveServer = self._state.live
        is_beta = is_ours(scope["path"].removeprefix(scope.get("root_path", "")))
        whole = b"".join(body)
        if not (is_beta or live.settings.live_passthrough_urls or may_ask(whole)):
            return None
        try:
            parsed = parse_json(whole, parse_constant=_no_number)
        except ValueError as problem:
            if is_beta:
                raise _invalid(InvalidBody(((), f"is not JSON ({problem})"))) from None
            return None  # vLLM says what is wrong with it
        if is_beta and (faults := _faults(parsed)):
            raise _invalid(InvalidBody(*faults))
        if not isinstance(parsed, dict):
            return None
        try:
            slots = references(parsed)
        except StreamFailure as failure:
            raise _refusal(failure, is_beta=is_beta) from failure
        if not (is_beta or live.settings.live_passthrough_urls or slots or "thread_id" in parsed):
            return None
        return Question(self._state, parsed, slots, is_beta=is_beta)


class Question:
    """One chat body that may name frames and a thread."""

    def __init__(self, state: State, body: Json, slots: Sequence[Slot], *, is_beta: bool) -> None:
        self._live: LiveServer = state.live
        self._models: Models = state.live_models
        self._state = state
        self._body = body
        self._slots = slots
        self._is_beta = is_beta

    async def answer(self, scope: Scope, send: Send, pass_on: PassOn) -> None:
        """Choose and encode the frames, have ``pass_on`` make the call, and send its answer with the receipt.

        Raises:
            Refusal: the frames cannot be had, or the body breaks a rule.
        """
        thread_id = self._body.pop("thread_id", None)
        slots = self._slots
        try:
            streams = [self._live.registry.active(owner_of(scope), slot.reference.stream_id) for slot in slots]
            chosen = await self._chosen(slots, [stream.ring for stream in streams])
        except StreamFailure as failure:
            raise _refusal(failure, is_beta=self._is_beta) from failure
        selected_ns = self._live.clock()
        account = _Account(
            exchange=exchange_of(scope),
            live=self._live,
            thread_id=thread_id if isinstance(thread_id, str) else None,
            offsets=[stream.offset for stream in streams if stream.offset is not None],
        )
        account.chose([(stream.id, frame) for stream, frames in zip(streams, chosen, strict=True) for frame in frames])
        account.stamp("selected", selected_ns)
        async with self._room(sum(map(encoded_bytes, chosen)), account.exchange):
            account.payload_bytes = await asyncio.to_thread(put_pictures, slots, chosen) if slots else None
            payload = json.dumps(self._body).encode()
            if self._state.media_policy is not None:
                self._state.media_policy.check(payload)
            account.stamp("encoded", self._live.clock())
            account.exchange.timings.among = await self._among(scope, account.thread_id)
            if not (self._is_beta or slots or account.thread_id):
                await pass_on([payload], scope, send)
            else:
                await pass_on([payload], scope, _Told(send, account))

    def _room(self, size_bytes: int, exchange: Exchange) -> AbstractAsyncContextManager[object]:
        """Room in the gateway's buffer for the pictures, beside that for the body which names them."""
        return self._state.buffer.room(size_bytes, exchange.timings) if size_bytes else nullcontext()

    async def _chosen(self, slots: Sequence[Slot], rings: Sequence[Any]) -> list[list[Frame]]:
        """The frames of each reference, waited for together.

        Raises:
            StreamFailure: of the first that cannot be had, or more frames than one question may choose.
        """
        waits = (select_in_time(ring, slot.reference) for slot, ring in zip(slots, rings, strict=True))
        chosen = await asyncio.gather(*waits)
        settings = self._live.settings
        count, size_bytes = sum(map(len, chosen)), sum(map(encoded_bytes, chosen))
        if count > settings.live_max_segment_frames:
            most = settings.live_max_segment_frames
            raise StreamFailure(
                "segment_invalid", f"{count} frames are chosen, {most} are allowed; ask for less, or lower max_fps"
            )
        if size_bytes > settings.gateway_max_body_bytes:
            raise StreamFailure("segment_invalid", f"{count} frames are {size_bytes} bytes; ask for fewer")
        return chosen

    async def _among(self, scope: Scope, thread_id: str | None) -> Callable[[], frozenset[int]] | None:
        """The upstreams that may be called: those with the model, and of a thread one of them."""
        fleet = self._state.fleet
        if len(fleet.upstreams) == 1:
            return None
        model = self._body.get("model")
        places = await self._models.places(model) if isinstance(model, str) else None
        places = places or frozenset(range(len(fleet.upstreams)))
        if thread_id is None:
            return lambda: places
        thread = (owner_of(scope), thread_id)

        def place() -> frozenset[int]:
            healthy = frozenset(index for index in places if not fleet.upstreams[index].is_set_aside)
            return frozenset((place_of(thread, healthy or places),))

        return place


class _Account:
    """What becomes the receipt, gathered on the way."""

    def __init__(
        self, *, exchange: Exchange, live: LiveServer, thread_id: str | None, offsets: Sequence[Offset]
    ) -> None:
        self.exchange = exchange
        self.clock = live.clock
        self.thread_id = thread_id
        self.payload_bytes: int | None = None
        self._clock_id = live.clock_id
        self._offsets = tuple(offsets)
        self._frames: list[tuple[str, Frame]] = []
        self._stamps = {"asked": live.stamp(exchange.began_ns)}
        self._live = live

    def chose(self, frames: list[tuple[str, Frame]]) -> None:
        """The frames, each with its stream's id. Up to ``stored`` the readings are those of the newest of them."""
        self._frames = frames
        if frames:
            newest = max((frame for _, frame in frames), key=lambda frame: frame.received_ns)
            self._stamps = {**newest.stamps, **self._stamps}

    def stamp(self, name: str, at_ns: int) -> None:
        """A reading of the server's clock."""
        self._stamps[name] = self._live.stamp(at_ns)

    def token(self) -> None:
        """A token passes: the first one, and for now the last one."""
        now_ns = self.clock()
        if "first_token" not in self._stamps:
            self.stamp("first_token", now_ns)
        self.stamp("final_token", now_ns)

    def receipt(self, accounts: Json) -> Json:
        """The two keys of the answer, which told ``accounts`` of itself."""
        permitted_ns = self.exchange.timings.permitted_ns
        if permitted_ns is not None:
            self.stamp("permitted", permitted_ns)
        selected_ns = self._stamps["selected"].ns
        return receipt_bodies(
            Receipt(
                frames=tuple(chosen_frame(id_, frame, selected_ns=selected_ns) for id_, frame in self._frames),
                stamps=self._stamps,
                offsets=self._offsets,
                payload_bytes=self.payload_bytes,
                visual_tokens=visual_tokens_of(accounts.get("usage")),
                reported_ms=reported_of(accounts.get("metrics")),
                cache=cache_of(accounts.get("usage"), thread_id=self.thread_id),
            )
        )


class _Told:
    """The send of one answer, with its receipt put in. Errors pass as they are."""

    def __init__(self, send: Send, account: _Account) -> None:
        self._send = send
        self._account = account
        self._start: Message | None = None
        self._stream: ReceiptStream | None = None
        self._passes = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._passes:
            await self._send(message)
        elif self._stream is not None:
            await self._send_events(self._stream, message)
        else:
            await self._send_whole(message)

    async def _begin(self, message: Message) -> None:
        headers = {name.lower(): value for name, value in message["headers"]}
        is_events = headers.get(b"content-type", b"").lower().startswith(b"text/event-stream")
        # An answer without a length is longer than what is held of one: it passes as it comes, and without a receipt.
        self._passes = message["status"] != 200 or (not is_events and b"content-length" not in headers)
        if self._passes:
            await self._send(message)
        elif is_events:
            self._stream = ReceiptStream(self._account.receipt, on_token=self._account.token)
            await self._send(message)
        else:
            self._start = message

    async def _send_events(self, stream: ReceiptStream, message: Message) -> None:
        body, more = message.get("body", b""), message.get("more_body", False)
        # The event that tells of a broken call begins with a blank line, which ends what was cut in the middle.
        out = stream.feed(body)
        if not more:
            out += stream.close()
        if out or not more:
            await self._send({"type": "http.response.body", "body": out, "more_body": more})

    async def _send_whole(self, message: Message) -> None:
        if self._start is None:
            return
        self._account.token()
        body = with_receipt(message.get("body", b""), self._account.receipt)
        kept = [(name, value) for name, value in self._start["headers"] if name.lower() != b"content-length"]
        length = start_message(0, {"Content-Length": str(len(body))})["headers"]
        await self._send({**self._start, "headers": [*kept, *length]})
        await self._send({"type": "http.response.body", "body": body})


def _faults(body: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """What is wrong with a chat body below /v1beta, each with its place."""
    if not isinstance(body, dict):
        return [((), "must be an object")]
    faults: list[tuple[tuple[str | int, ...], str]] = []
    if not isinstance(body.get("model"), str) or not body["model"]:
        faults.append((("model",), "must be the name of a model; GET /v1beta/models lists them"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        faults.append((("messages",), "must be a list of one message or more"))
    else:
        for index, message in enumerate(messages):
            if not isinstance(message, dict) or message.get("role") not in _ROLES:
                faults.append((("messages", index), f"must be an object whose role is one of {', '.join(_ROLES)}"))
    if not isinstance(body.get("stream", False), bool | None):
        faults.append((("stream",), "must be true or false"))
    thread_id = body.get("thread_id")
    if thread_id is not None and not (isinstance(thread_id, str) and 0 < len(thread_id) <= THREAD_LETTERS):
        faults.append((("thread_id",), f"must be a string of 1 to {THREAD_LETTERS} letters"))
    return faults[:20]


def _refusal(failure: StreamFailure, *, is_beta: bool) -> Refusal:
    refusal = Refusal(failure.status, failure.message, type=failure.code)
    if is_beta:
        refusal.body = json.dumps(failure.chat_body(), ensure_ascii=False).encode()
    return refusal


def _invalid(problem: InvalidBody) -> Refusal:
    refusal = Refusal(422, str(problem), type=problem.outcome)
    refusal.body = json.dumps(problem.body, ensure_ascii=False).encode()
    return refusal


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
