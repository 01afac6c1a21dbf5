"""An answer about a live stream: read as it comes, then judged, with the receipt of both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from vision_bench.answers.analysis import Question
from vision_bench.answers.validate import Verdict, validate
from vision_bench.client.gateway import ChatStream
from vision_bench.client.live_half import ClientHalf
from vision_bench.errors import BrokenStream
from vision_bench.live.joining import ServerClock
from vision_bench.live.receipt import STAGES, TOTALS, ChosenFrame, Receipt, StageTime, stage_times
from vision_bench.wire.chat import Reply
from vision_bench.wire.chat_stream import Delta


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """A whole answer.

    Attributes:
        verdict: the text held against the question's schema.
        receipt: None where the answer had none that can be read.
        model: who was asked; another than the preferred one when that could not be had.
        tries: calls that were made for it, 1 without a retry.
        ttft_ms: from the decision to ask to the first output, waiting and retries included; None without output.
        elapsed_ms: from the decision to ask to the judged answer.
    """

    reply: Reply
    verdict: Verdict
    receipt: Receipt | None
    model: str
    tries: int
    ttft_ms: float | None
    elapsed_ms: float

    @property
    def frames(self) -> tuple[ChosenFrame, ...]:
        """What the model was shown."""
        return () if self.receipt is None else self.receipt.frames

    def stages(self) -> list[StageTime]:
        """Each stage from the camera to the judged answer, and then the totals; empty without a receipt."""
        return [] if self.receipt is None else stage_times(self.receipt, (*STAGES, *TOTALS))


class AnswerStream:
    """An answer being read: iterate it for the pieces of output, then look at ``answer``.

    Leaving the block in which it is open ends the call, and the gateway ends its own.
    """

    def __init__(
        self,
        stream: ChatStream,
        question: Question,
        *,
        half: ClientHalf,
        server: ServerClock,
        clock: Callable[[], int],
        model: str,
    ) -> None:
        self._stream = stream
        self._question = question
        self._half = half
        self._server = server
        self._clock = clock
        self._answer: LiveAnswer | None = None
        self.model = model

    async def __aiter__(self) -> AsyncIterator[Delta]:
        async for delta in self._stream:
            yield delta
        self._answer = self._judged()

    @property
    def answer(self) -> LiveAnswer:
        """The whole answer.

        Raises:
            BrokenStream: the iteration has not come to its end.
        """
        if self._answer is None:
            raise BrokenStream("the answer has not been read to its end; iterate it first")
        return self._answer

    def _judged(self) -> LiveAnswer:
        stream, half, reply = self._stream, self._half, self._stream.reply
        verdict = validate(reply, self._question)
        validated_ns = self._clock()
        half.first_output_ns = stream.first_output_ns
        for name, at_ns in (("read", stream.read_ns), ("parsed", stream.parsed_ns), ("validated", validated_ns)):
            half.stamp(name, at_ns)
        first_ns = stream.first_output_ns
        return LiveAnswer(
            reply=reply,
            verdict=verdict,
            receipt=half.whole(stream.receipt, self._server),
            model=self.model,
            tries=half.tries,
            ttft_ms=None if first_ns is None else (first_ns - half.decided_ns) / 1e6,
            elapsed_ms=(validated_ns - half.decided_ns) / 1e6,
        )
