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
from starlette.types import Scope, Send

from vision_bench.gateway.exchange import Exchange, Refusal, exchange_of
from vision_bench.gateway.keys import owner_of
from vision_bench.gateway.live_account import Account, Told
from vision_bench.gateway.live_models import Models
from vision_bench.gateway.live_server import LiveServer
from vision_bench.gateway.live_shapes import InvalidBody, is_ours
from vision_bench.gateway.live_threads import place_of
from vision_bench.live.failures import StreamFailure
from vision_bench.live.questions import Slot, encoded_bytes, may_ask, put_pictures, references
from vision_bench.live.registry import Stream
from vision_bench.live.ring import Frame, Ring
from vision_bench.live.selection import select, select_in_time
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
            streams = self._streams(scope)
            try:
                chosen = await self._chosen([stream.ring for stream in streams])
            except StreamFailure:
                self._streams(scope)  # one that ended meanwhile holds nothing: then that is why
                raise
        except StreamFailure as failure:
            raise _refusal(failure, is_beta=self._is_beta) from failure
        newest = {stream.id: stream.ring.newest for stream in streams}  # nothing ran since the choice
        selected_ns = self._live.clock()
        account = Account(
            exchange=exchange_of(scope),
            live=self._live,
            thread_id=thread_id if isinstance(thread_id, str) else None,
            offsets=[stream.offset for stream in streams if stream.offset is not None],
        )
        account.chose([(stream.id, frame) for stream, frames in zip(streams, chosen, strict=True) for frame in frames])
        account.saw(newest)
        account.stamp("selected", selected_ns)
        async with self._room(sum(map(encoded_bytes, chosen)), account.exchange):
            try:
                account.payload_bytes = await asyncio.to_thread(put_pictures, slots, chosen) if slots else None
            except StreamFailure as failure:
                raise _refusal(failure, is_beta=self._is_beta) from failure
            payload = json.dumps(self._body).encode()
            if self._state.media_policy is not None:
                self._state.media_policy.check(payload)
            account.stamp("encoded", self._live.clock())
            account.exchange.timings.among = await self._among(scope, account.thread_id)
            if not (self._is_beta or slots or account.thread_id):
                await pass_on([payload], scope, send)
            else:
                await pass_on([payload], scope, Told(send, account))

    def _room(self, size_bytes: int, exchange: Exchange) -> AbstractAsyncContextManager[object]:
        """Room for the pictures. Not in the buffer where the body that names them has room already: bodies that fill
        it together would wait for one another."""
        return self._live.pictures.room(size_bytes, exchange.timings) if size_bytes else nullcontext()

    def _streams(self, scope: Scope) -> list[Stream]:
        """The stream of each reference.

        Raises:
            StreamFailure: ``stream_not_found``.
        """
        return [self._live.registry.active(owner_of(scope), slot.reference.stream_id) for slot in self._slots]

    async def _chosen(self, rings: Sequence[Ring]) -> list[list[Frame]]:
        """The frames of each reference: waited for together, and chosen at one moment when all have come.

        Raises:
            StreamFailure: of the first that cannot be had, or more frames than one question may choose.
        """
        pairs = [(ring, slot.reference) for slot, ring in zip(self._slots, rings, strict=True)]
        if any(reference.wait_ms for _, reference in pairs):
            # What is found while others wait is not kept: a minute of it would be no part of what a stream may hold.
            waits = [asyncio.ensure_future(select_in_time(*pair)) for pair in pairs]
            try:
                await asyncio.gather(*waits)
            finally:
                for wait in waits:
                    wait.cancel()
        chosen = [select(*pair) for pair in pairs]
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
