"""What media cost before the model begins, seen from outside, where the server does not tell: paired differences.

Three requests make a pair, one at a time: a clip that no cache knows; the same clip behind another beginning, so that
the server's processor cache knows it and its prefix cache does not; and a text of as many prompt tokens. All ask for
one token. The first less the third is loading, decoding, preprocessing and the encoder; the first less the second is
what the caches of processed media save.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from vision_bench.bench.chat.bodies import Bodies, Item, encode_json
from vision_bench.bench.chat.formulas import between_ms, first_ns
from vision_bench.bench.chat.record import ChatRecord
from vision_bench.bench.column import column
from vision_bench.bench.record import OK
from vision_bench.errors import InvalidRequest, UpstreamError

Json = dict[str, Any]
Send = Callable[[ChatRecord, Item], Awaitable[None]]

FILLER = "word "
TRIAL_WORDS = 200
"""Sent once to learn how many tokens a word is to this server."""
WARM_UP = 1


@dataclass
class Pairs:
    """Sends pairs and keeps their differences.

    Args:
        bodies: of a workload whose clips are all unique.
        send: sends an item and fills the record in.
        now: the clock.
    """

    bodies: Bodies
    send: Send
    now: Callable[[], int]
    salt: str
    _count: int = 0
    _tokens: list[tuple[int, int]] = field(default_factory=list)

    async def run(self, count: int) -> Json:
        """``count`` pairs and what they come to, after one that warms up.

        Raises:
            UpstreamError: a request of a pair failed, or the server tells no prompt tokens.
        """
        total = count + WARM_UP
        self.bodies.ready(0, total)
        words_of = await self._words_of()
        media, cache = [], []
        for number in range(total):
            body = json.loads(b"".join(map(bytes, self.bodies.item(number).buffers)))
            fresh, tokens = await self._ask(body)
            known, _ = await self._ask(body)
            text, text_tokens = await self._ask(self._text(body, words_of(tokens)))
            if number >= WARM_UP:
                media.append(fresh - text)
                cache.append(fresh - known)
                self._tokens.append((tokens, text_tokens))
        return {
            "pairs": count,
            "ordinals": total,
            "media_less_text_ms": column(media),
            "uncached_less_cached_ms": column(cache),
            "prompt_tokens": column([float(tokens) for tokens, _ in self._tokens]),
            "text_prompt_tokens": column([float(tokens) for _, tokens in self._tokens]),
        }

    async def _words_of(self) -> Callable[[int], int]:
        """From prompt tokens to words of filler, by two texts."""
        body = json.loads(b"".join(map(bytes, self.bodies.item(0).buffers)))
        _, none = await self._ask(self._text(body, 0))
        _, some = await self._ask(self._text(body, TRIAL_WORDS))
        each = max((some - none) / TRIAL_WORDS, 1e-3)
        return lambda tokens: max(0, round((tokens - none) / each))

    def _text(self, body: Json, words: int) -> Json:
        """The body without its media, and with so many words of filler."""
        *before, user = body["messages"]
        text = "".join(part["text"] for part in user["content"] if part["type"] == "text")
        left_out = ("mm_processor_kwargs", "media_io_kwargs")
        kept = {key: value for key, value in body.items() if key not in left_out}
        return kept | {"messages": [*before, user | {"content": FILLER * words + text}]}

    async def _ask(self, body: Json) -> tuple[float, int]:
        """Time from the last byte sent to the first token, ms, and the prompt's tokens; one token is asked for."""
        item = self._item(body)
        now_ns = self.now()
        record = ChatRecord(step=0, index=self._count, ordinal=self._count, due_ns=now_ns, dsp_ns=now_ns)
        await self.send(record, item)
        took_ms = between_ms(record.bod_ns or record.hdr_ns, first_ns(record) or record.end_ns)
        if record.outcome != OK or took_ms is None:
            raise UpstreamError(f"a request of --preprocess-pairs failed ({record.outcome}): {record.detail}")
        if record.prompt_tokens is None:
            raise UpstreamError("--preprocess-pairs needs prompt tokens in the answer's usage; this server tells none")
        return took_ms, record.prompt_tokens

    def _item(self, body: Json) -> Item:
        """With a beginning of its own, which no prefix cache knows."""
        self._count += 1
        nonce = hashlib.sha256(f"{self.salt}/pair/{self._count}".encode()).hexdigest()[:12]
        messages = body["messages"]
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        rest = messages[1:] if messages[0]["role"] == "system" else messages
        budget = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        begun = [{"role": "system", "content": f"[{nonce}] {system}".strip()}, *rest]
        data = encode_json(body | {"messages": begun, budget: 1})
        return Item(f"pair {self._count}", (data,), len(data), hashlib.sha256(data).hexdigest()[:16])


def check_pairs(media: str, cache: str, wire: str) -> None:
    """Refuse a workload that has no pairs.

    Raises:
        InvalidRequest: the message says what is missing.
    """
    if media != "video" or cache != "unique":
        raise InvalidRequest(
            '--preprocess-pairs needs media = "video" and cache = "unique": a clip that was sent before is no new one'
        )
    if wire == "batch":
        raise InvalidRequest("--preprocess-pairs asks one question at a time; give a chat target, not /chat/batch")
