"""Two ways of sending many bodies: one gateway batch, or chat calls a few at a time to a server without batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

from vision_bench.client.address import check_address
from vision_bench.client.gateway import DEFAULT_TIMEOUT_SECONDS, BatchLine, GatewayClient
from vision_bench.errors import HttpFailure, UpstreamError
from vision_bench.wire.chat import Json

Items = Sequence[tuple[str, Json]]

TOO_LARGE = 413
COMPLETIONS = "/v1/chat/completions"


class Sender(Protocol):
    """Sends items; gives one line an item as they complete."""

    async def check(self) -> None:
        """Raise unless somebody answers at the address."""

    def send(self, items: Items, request_id: str) -> AsyncGenerator[BatchLine, None]:
        """Lines in order of completion. A failure of the whole call is raised; see `GatewayClient.batch`."""

    async def close(self) -> None:
        """End every call."""


class BatchSender:
    """Through the gateway's ``/chat/batch``. A batch that the gateway finds too large is sent as two halves."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client

    async def check(self) -> None:
        await self._client.check()

    async def close(self) -> None:
        await self._client.close()

    async def send(self, items: Items, request_id: str) -> AsyncGenerator[BatchLine, None]:
        try:
            async with contextlib.aclosing(self._client.batch(items, request_id=request_id)) as lines:
                async for line in lines:
                    yield line
            return
        except HttpFailure as failure:  # raised before the first line, so nothing is sent twice
            if failure.status != TOO_LARGE or len(items) == 1:
                raise
        middle = len(items) // 2
        for half in (items[:middle], items[middle:]):
            async with contextlib.aclosing(self.send(half, request_id)) as lines:
                async for line in lines:
                    yield line


class ChatSender:
    """Straight to a model server's chat route, at most ``concurrency`` at once: four is the gateway's own default."""

    def __init__(self, client: GatewayClient, *, concurrency: int = 4, health_path: str = "/v1/models") -> None:
        self._client = client
        self._slots = asyncio.Semaphore(concurrency)
        self._health_path = health_path

    async def check(self) -> None:
        await self._client.check(self._health_path)

    async def close(self) -> None:
        await self._client.close()

    async def send(self, items: Items, request_id: str) -> AsyncGenerator[BatchLine, None]:
        tasks = [
            asyncio.create_task(self._one(name, body, f"{request_id}-{index}"))
            for index, (name, body) in enumerate(items)
        ]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, name: str, body: Json, request_id: str) -> BatchLine:
        async with self._slots:
            try:
                answer = await self._client.chat(body, request_id=request_id)
            except HttpFailure as failure:
                message = str(failure).partition(": ")[2]
                return BatchLine(name, failure.status, None, None, message)
            except UpstreamError as failure:
                if failure.outcome == "connect_failed":
                    raise
                return BatchLine(name, 500, 0, None, f"{failure.outcome}: {failure}")
        return BatchLine(name, 200, round(answer.elapsed_ms), answer.body, None)


def open_sender(
    url: str,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    api_key: str | None = None,
    concurrency: int = 4,
) -> Sender:
    """The sender that fits ``url``: the gateway's root gets batches, an address with ``/v1`` in its path gets chats.

    Raises:
        InvalidRequest: ``url`` is no address.
    """
    parts = urlsplit(check_address(url))
    path = parts.path.rstrip("/")
    base = path.removesuffix("/chat/completions")
    if not base.endswith("/v1"):
        return BatchSender(GatewayClient(url, timeout_seconds=timeout_seconds, api_key=api_key))
    root = urlunsplit((parts.scheme, parts.netloc, base.removesuffix("/v1"), "", ""))
    client = GatewayClient(root, timeout_seconds=timeout_seconds, api_key=api_key, chat_path=COMPLETIONS)
    return ChatSender(client, concurrency=concurrency)
