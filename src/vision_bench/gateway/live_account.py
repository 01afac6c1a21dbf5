"""What an answer tells of itself: gathered while its question is worked on, and put into it on its way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.types import Message, Send

from vision_bench.gateway.exchange import Exchange, start_message
from vision_bench.gateway.live_server import LiveServer
from vision_bench.live.answers import ReceiptStream, with_receipt
from vision_bench.live.clocks import Offset
from vision_bench.live.receipt import (
    NewestFrame,
    Receipt,
    cache_of,
    chosen_frame,
    receipt_bodies,
    reported_of,
    visual_tokens_of,
)
from vision_bench.live.ring import Frame
from vision_bench.live.shapes import Json


class Account:
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
        self._newest: tuple[NewestFrame, ...] = ()
        self._stamps = {"asked": live.stamp(exchange.began_ns)}
        self._live = live

    def chose(self, frames: list[tuple[str, Frame]]) -> None:
        """The frames, each with its stream's id. Up to ``stored`` the readings are those of the newest of them."""
        self._frames = frames
        if frames:
            newest = max((frame for _, frame in frames), key=lambda frame: frame.received_ns)
            self._stamps = {**newest.stamps, **self._stamps}

    def saw(self, newest: Mapping[str, Frame | None]) -> None:
        """The newest frame of each stream, by its id, at the moment of the choice."""
        self._newest = tuple(
            NewestFrame(id_, frame.index, frame.stream_ms) for id_, frame in newest.items() if frame is not None
        )

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
                newest=self._newest,
                stamps=self._stamps,
                offsets=self._offsets,
                payload_bytes=self.payload_bytes,
                visual_tokens=visual_tokens_of(accounts.get("usage")),
                reported_ms=reported_of(accounts.get("metrics")),
                cache=cache_of(accounts.get("usage"), thread_id=self.thread_id),
            )
        )


class Told:
    """The send of one answer, with its receipt put in. Errors pass as they are."""

    def __init__(self, send: Send, account: Account) -> None:
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
        # An answer without a length is longer than what is held of one: it passes as it comes, and without a receipt,
        # as one does that is packed, for it cannot be read.
        is_readable = (is_events or b"content-length" in headers) and b"content-encoding" not in headers
        self._passes = message["status"] != 200 or not is_readable
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
