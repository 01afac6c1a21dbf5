"""Sends one chat request and fills in its record: the only place of this kind that does I/O."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from vision_bench.bench.chat.bodies import Bodies, Item, encode_json
from vision_bench.bench.chat.connection import Connection
from vision_bench.bench.chat.pool import Pool
from vision_bench.bench.chat.reader import AnswerReader
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.clock import Clock
from vision_bench.bench.record import OK
from vision_bench.errors import ConnectFailed, InvalidRequest, UnknownName, UpstreamTimeout, reason
from vision_bench.wire.authorization import checked_key
from vision_bench.wire.chat import chat_body, error_message, read_reply, user_message
from vision_bench.wire.models import Model, read_models
from vision_bench.wire.prometheus import Page, read_page
from vision_bench.wire.shapes import MAX_DEPTH, parse_json

Wire = Literal["completions", "chat", "batch"]

COMPLETIONS = "/v1/chat/completions"
CHECK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where requests go, and what is spoken there."""

    url: str
    host: str
    port: int
    path: str
    is_secure: bool
    wire: Wire

    @property
    def root(self) -> str:
        """What stands before the chat route: models and metrics are found under it."""
        for route in ("/v1/chat/completions", "/chat/completions", "/chat/batch", "/chat"):
            if self.path.endswith(route):
                return self.path.removesuffix(route)
        return ""

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


def read_address(url: str) -> Address:
    """``http://host:port`` and the path that picks the wire: none or ``/v1`` for ``/v1/chat/completions``, ``/chat``,
    ``/chat/batch``.

    Raises:
        InvalidRequest: no such address.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise InvalidRequest(
            f"{url!r} is no address ({problem}); give one such as http://127.0.0.1:8001/chat"
        ) from problem
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InvalidRequest(f"{url!r} is no address of a chat server; give one such as http://127.0.0.1:8001/chat")
    path = parts.path.rstrip("/")
    wire: Wire
    if path == "":
        path, wire = COMPLETIONS, "completions"
    elif path.endswith("/v1"):
        path, wire = f"{path}/chat/completions", "completions"
    elif path.endswith("/chat/completions"):
        wire = "completions"
    elif path.endswith("/chat/batch"):
        wire = "batch"
    elif path.endswith("/chat"):
        wire = "chat"
    else:
        raise InvalidRequest(
            f"{url!r}: the path {parts.path} is no chat route; use /chat, /chat/batch or /v1/chat/completions"
        )
    is_secure = parts.scheme == "https"
    shown = f"{parts.scheme}://{parts.netloc}{path}"
    return Address(shown, parts.hostname, port or (443 if is_secure else 80), path, is_secure, wire)


class ServerFacts(NamedTuple):
    """What the server told before the run.

    Attributes:
        models: its model ids, or None where it lists none.
        model: of the one that is asked, ``id`` and, where told, ``max_model_len`` and a hash of what was loaded under
            that name (a path on the server, so not the path itself; a gateway tells none). None where not listed.
    """

    models: list[str] | None
    model: dict[str, Any] | None


class ChatTarget:
    """One server. Nothing is retried: a retry would hide a failure.

    Args:
        api_key: a bearer token; it is sent and never shown.
        run_id: the first part of every request id.
        is_valid: see ``AnswerReader``.
    """

    def __init__(
        self,
        address: Address,
        pool: Pool,
        bodies: Bodies,
        *,
        clock: Clock,
        timeout_seconds: float,
        run_id: str,
        api_key: str | None = None,
        is_valid: Callable[[str], bool] | None = None,
    ) -> None:
        self._address = address
        self._pool = pool
        self._bodies = bodies
        self._now = clock.now_ns
        self._timeout_seconds = timeout_seconds
        self._run_id = run_id
        self._is_valid = is_valid
        self._sent: set[str] = set()
        self._answered_threads: set[str] = set()
        key = f"Authorization: Bearer {checked_key(api_key)}\r\n" if api_key else ""
        self._common_head = (
            f"Host: {address.authority}\r\nUser-Agent: vision-bench\r\nAccept: */*\r\n"
            f"Accept-Encoding: identity\r\n{key}"
        )
        self._head = f"POST {address.path} HTTP/1.1\r\n{self._common_head}Content-Type: application/json\r\n"

    async def check(self, model: str) -> ServerFacts:
        """Whether the server is there and knows the model: by its list, and by one token where that leaves doubt.

        Raises:
            ConnectFailed: nobody answers.
            UnknownName: it does not serve the model.
            InvalidRequest: it wants a key, or another one.
        """
        await self._pool.check()
        status, body = await self._ask("GET", f"{self._address.root}/v1/models", b"")
        if status in (401, 403):
            raise InvalidRequest(f"{self._address.url} answered {status}: {error_message(body)[:200]}; give --api-key")
        cards: list[Model] = []
        models: list[str] | None = None
        with contextlib.suppress(ValueError):
            if status == 200:
                cards = read_models(parse_json(body))
                models = [one.id for one in cards]
        if models is not None and model not in models and self._address.wire != "batch":
            # Adapters and aliases need not be listed: the server decides.
            probe = encode_json(chat_body(model=model, messages=[user_message("Hi")], max_tokens=1))
            status, body = await self._ask("POST", self._address.path, probe)
            if status == 404:
                listed = ", ".join(models[:10]) or "none"
                raise UnknownName(f"{self._address.url} does not serve the model {model!r}; it lists {listed}")
        return ServerFacts(models, next((_facts(card) for card in cards if card.id == model), None))

    async def count_system(self, model: str, system: str) -> int | None:
        """Prompt tokens that the system prompt takes: of a short question with it, less those without it.

        None where the server tells no counts, or the wire takes batches alone.
        """
        if self._address.wire == "batch":
            return None
        counts = []
        for before in ([], [{"role": "system", "content": system}]):
            body = encode_json(chat_body(model=model, messages=[*before, user_message("Hi")], max_tokens=1))
            status, answer = await self._ask("POST", self._address.path, body)
            try:
                usage = read_reply(parse_json(answer)).usage if status == 200 else None
            except ValueError:
                usage = None
            counts.append((usage or {}).get("prompt_tokens"))
        without, having = counts
        return having - without if isinstance(having, int) and isinstance(without, int) else None

    async def observe(self) -> Page | None:
        """The server's metrics as they are now; None where it has none."""
        try:
            status, body = await self._ask("GET", f"{self._address.root}/metrics", b"")
        except ConnectFailed:
            return None
        return read_page(body.decode(errors="replace")) if status == 200 else None

    async def send(self, record: ChatRecord) -> None:
        """Send what the record's ordinal stands for, and fill it in; failures are outcomes."""
        record.dec_ns = record.due_ns
        if self._bodies.are_encoded_inside:
            item, record.sel_ns, record.enc_ns, record.ser_ns = await asyncio.to_thread(
                self._bodies.encode, record.ordinal
            )
        else:
            item = self._bodies.item(record.ordinal)
        await self.send_item(record, item)

    async def send_item(self, record: ChatRecord, item: Item) -> None:
        """Send this, and fill the record in."""
        self._describe(record, item)
        reader = AnswerReader(
            record, now=self._now, batch_size=item.batch_size, is_valid=self._is_valid, parse=quick_json
        )
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._exchange(record, item, reader)
        except ConnectFailed as problem:
            record.end(problem.outcome, str(problem))
        except TimeoutError:
            record.end(UpstreamTimeout.outcome, f"no whole answer within {self._timeout_seconds:g} s")
        if item.thread is not None and record.outcome == OK:
            self._answered_threads.add(item.thread)

    async def _exchange(self, record: ChatRecord, item: Item, reader: AnswerReader) -> None:
        connection = self._pool.take()
        record.is_new_connection = connection is None
        if connection is None:
            connection = await self._pool.connect()
        record.con_ns = self._now()
        head = f"{self._head}X-Request-Id: {record.request_id}\r\nContent-Length: {item.size_bytes}\r\n\r\n"
        try:
            await connection.exchange(head.encode("latin-1"), item.buffers, reader)
        except BaseException:
            self._stamp(record, connection)
            self._pool.discard(connection)
            raise
        self._stamp(record, connection)
        problem = None if connection.problem is None else reason(connection.problem)
        self._pool.give_back(connection)
        reader.close(is_whole=connection.is_whole, end_ns=connection.end_ns, problem=problem)

    def _stamp(self, record: ChatRecord, connection: Connection) -> None:
        record.hdr_ns, record.bod_ns = connection.hdr_ns, connection.bod_ns or None
        record.response_bytes = connection.response_bytes

    def _describe(self, record: ChatRecord, item: Item) -> None:
        record.request_id = f"{self._run_id}-{record.ordinal}"
        record.item, record.body_sha256, record.request_bytes = item.name, item.sha256, item.size_bytes
        record.is_repeat = item.sha256 in self._sent
        self._sent.add(item.sha256)
        if item.thread is not None:
            record.is_warm = item.thread in self._answered_threads

    async def _ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """One request outside the clock; (0, b"") where no answer came."""
        connection = self._pool.take() or await self._pool.connect()
        answer = _Whole()
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._common_head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await connection.exchange(head.encode("latin-1"), [body], answer)
        except TimeoutError:
            self._pool.discard(connection)
            return 0, b""
        self._pool.give_back(connection)
        return answer.status, b"".join(answer.pieces)


def _facts(card: Model) -> dict[str, Any]:
    told = {"id": card.id, "max_model_len": card.max_model_len, "root_sha256": card.root_sha256}
    return {name: value for name, value in told.items() if value is not None}


def quick_json(text: str) -> Any:
    """``parse_json`` for what is plain and shallow, as nearly every event is, in a fifth of its time."""
    if text.count("{") + text.count("[") > MAX_DEPTH:
        return parse_json(text)
    try:
        return msgspec.json.decode(text)
    except (
        msgspec.MsgspecError,
        UnicodeEncodeError,
    ):  # NaN, or half of a surrogate pair: JSON to Python's parser alone
        return parse_json(text)


class _Whole:
    """A reader that keeps everything."""

    is_finished = False

    def __init__(self) -> None:
        self.status = 0
        self.pieces: list[bytes] = []

    def head(self, status: int, headers: dict[str, Any], now_ns: int) -> None:
        self.status = status

    def body(self, data: bytes, now_ns: int) -> None:
        self.pieces.append(data)
