"""An answer as events: role, text, finish reason, usage, ``[DONE]``."""

from __future__ import annotations

from collections.abc import Mapping

from vision_bench.engine.chat.answering import Answering, Piece
from vision_bench.engine.chat.exchange import Exchange
from vision_bench.engine.chat.replies import Json, ReplyHead, request_metrics, running_usage
from vision_bench.engine.chat.settings import EngineSettings


class StreamedAnswer:
    """One streamed request. Headers leave when the media has been checked; text when it is generated."""

    def __init__(self, answering: Answering, head: ReplyHead, exchange: Exchange, settings: EngineSettings) -> None:
        options = answering.request.raw.get("stream_options")
        asked: Mapping[str, object] = options if isinstance(options, dict) else {}
        self._answering = answering
        self._head = head
        self._exchange = exchange
        self._settings = settings
        self._with_usage = bool(asked.get("include_usage"))
        self._with_running_usage = self._with_usage and bool(asked.get("continuous_usage_stats"))
        self._introduced: set[int] = set()
        self._held: dict[int, list[Piece]] = {}
        self._counts: dict[int, int] = {}

    async def run(self) -> None:
        """Send the whole stream; errors of the model pass through to whoever called."""
        await self._exchange.start_events()
        if self._settings.role_chunk == "immediate":
            for index in range(self._answering.request.n):
                await self._introduce(index)
        await self._answering.run(self._emit)
        if self._with_usage:
            tokens = sum(self._counts.values())
            answering = self._answering
            metrics = request_metrics(answering.timeline) if self._settings.tells_metrics(answering.request.n) else None
            await self._exchange.event(self._head.usage_chunk(answering.prepared, tokens, metrics))
        await self._exchange.done()

    async def _introduce(self, index: int) -> None:
        if index not in self._introduced:
            self._introduced.add(index)
            await self._exchange.event(self._head.role_chunk(index, self._usage(0)))

    async def _emit(self, piece: Piece) -> None:
        await self._introduce(piece.index)
        held = self._held.setdefault(piece.index, [])
        held.append(piece)
        if len(held) < self._settings.tokens_per_chunk and piece.finish_reason is None:
            return
        text = "".join(part.text for part in held)
        held.clear()
        self._counts[piece.index] = piece.count
        usage = self._usage(piece.count)
        if piece.finish_reason is None:
            await self._exchange.event(self._head.text_chunk(piece.index, text, usage))
            return
        chunk = self._head.last_chunk(
            piece.index, text, piece.finish_reason, piece.stop_reason, usage, signed=not self._with_usage
        )
        await self._exchange.event(chunk)

    def _usage(self, count: int) -> Json | None:
        return running_usage(self._answering.prepared, count) if self._with_running_usage else None
