"""The vLLMs behind the gateway: which of them are in service, what went wrong, and what models they have."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from vision_bench.errors import HttpFailure, UpstreamError, UpstreamTimeout
from vision_bench.gateway.admission import Admission, Lane
from vision_bench.gateway.transport import Transport
from vision_bench.wire.chat import error_message
from vision_bench.wire.models import shown_models

logger = logging.getLogger(__name__)

MODELS_PATH = "/models"

LIST_LIMIT_BYTES = 1024 * 1024
"""A model list. vLLM writes half a kilobyte a model."""

FIRST_PROBE_SECONDS = 1.0
LAST_PROBE_SECONDS = 30.0
"""A server that is set aside is asked after the first, then after twice as long each time, up to the last."""

PROBE_TIMEOUT_SECONDS = 5.0


class Upstream:
    """One vLLM.

    Attributes:
        url: its /v1 endpoint.
        transport: its sockets.
        lane: its permits.
        failures: calls that it did not answer: not reached, broken off, or sent elsewhere after a 502 or 503.
        last_error: the latest of them, in words; None: none since the start.
        setbacks: how often in a row it was set aside, or asked in vain, without an answered call in between.
    """

    def __init__(self, url: str, transport: Transport, lane: Lane) -> None:
        self.url = url
        self.transport = transport
        self.lane = lane
        self.failures = 0
        self.last_error: str | None = None
        self.setbacks = 0

    @property
    def in_use(self) -> int:
        """Permits that are out: calls that run."""
        return self.lane.in_use

    @property
    def retries(self) -> int:
        """Calls that were sent again because a kept connection had gone stale."""
        count: int = getattr(self.transport, "retries", 0)
        return count

    @property
    def is_set_aside(self) -> bool:
        """It gets no calls for now, for there is another one."""
        return self.lane.set_aside_ns is not None

    async def models(self, authorization: str | None, *, timeout_seconds: float) -> dict[str, Any]:
        """Its models, as they may be shown. Takes no permit: vLLM answers this beside its work.

        Raises:
            HttpFailure: it answered with an error status.
            UpstreamError: the answer is no model list; also those of ``ask``.
        """
        status, body = await self.ask(authorization, timeout_seconds=timeout_seconds)
        if status > 599:
            raise UpstreamError(f"{self.url}{MODELS_PATH} answers with status {status}, which is none of HTTP's")
        if status >= 400:
            raise HttpFailure(status, error_message(body) if body.strip() else "no reason given", body=body)
        try:
            return shown_models([json.loads(body)])
        except (ValueError, RecursionError) as problem:
            raise UpstreamError(f"{self.url}{MODELS_PATH} answers {status} with no model list: {problem}") from problem

    async def ask(self, authorization: str | None, *, timeout_seconds: float) -> tuple[int, bytes]:
        """Status and body of its answer to GET /models.

        Raises:
            ConnectFailed, BrokenStream: see the transport.
            UpstreamTimeout: no whole answer in time.
            UpstreamError: longer than ``LIST_LIMIT_BYTES``.
        """
        headers = {} if authorization is None else {"Authorization": authorization}
        try:
            async with asyncio.timeout(timeout_seconds), self.transport.get(MODELS_PATH, headers) as answer:
                body = b""
                while piece := await answer.read_some():
                    body += piece
                    if len(body) > LIST_LIMIT_BYTES:
                        raise UpstreamError(f"the model list of {self.url} is longer than {LIST_LIMIT_BYTES} bytes")
                return answer.status, body
        except TimeoutError:
            raise UpstreamTimeout(f"{self.url} sent no model list in {timeout_seconds:g} s") from None


State = Literal["ready", "saturated", "degraded", "unavailable"]


def state_of(upstreams: Iterable[Upstream]) -> State:
    """How a model stands that ``upstreams`` list: none of them is in service, all their permits are out, or some of
    them are set aside."""
    listed = list(upstreams)
    in_service = [upstream for upstream in listed if not upstream.is_set_aside]
    if not in_service:
        return "unavailable"
    if all(upstream.in_use >= upstream.lane.permits for upstream in in_service):
        return "saturated"
    return "degraded" if len(in_service) < len(listed) else "ready"


class Fleet:
    """Every vLLM that ``VLLM_BASE_URL`` names. Leaving the block ends the probes; the transports are the caller's.

    Of several servers, one that fails is set aside, and asked for its models in the background until it answers. A
    single server is never set aside and never probed.

    Attributes:
        upstreams: in the order of ``VLLM_BASE_URL``.
        moves: calls that went to a second server because the first one failed.
    """

    def __init__(
        self, transports: Mapping[str, Transport], admission: Admission, *, api_key: str | None = None
    ) -> None:
        self.upstreams = tuple(
            Upstream(url, transport, lane)
            for (url, transport), lane in zip(transports.items(), admission.lanes, strict=True)
        )
        self.admission = admission
        self.moves = 0
        self._api_key = api_key
        self._probes: dict[Upstream, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        probes = tuple(self._probes.values())
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)

    def authorization(self, callers: str | None) -> str | None:
        """The header that goes to vLLM: VLLM_API_KEY if there is one, else the ``callers`` own."""
        return callers if self._api_key is None else f"Bearer {self._api_key}"

    def has_other(self, upstream: Upstream) -> bool:
        """Whether a call that this one failed has somewhere else to go."""
        return any(other is not upstream and not other.is_set_aside for other in self.upstreams)

    def failed(self, upstream: Upstream, reason: str, *, sets_aside: bool = True) -> None:
        """It did not answer a call."""
        upstream.failures += 1
        upstream.last_error = reason
        if not sets_aside or len(self.upstreams) == 1:
            return
        if not upstream.is_set_aside:
            upstream.setbacks += 1
            logger.warning("upstream=%s set aside: %s", upstream.url, reason)
        self.admission.set_aside(upstream.lane)
        if upstream not in self._probes:
            self._probes[upstream] = asyncio.create_task(self._probe(upstream))

    def answered(self, upstream: Upstream) -> None:
        """It answered a call: whatever was wrong is over."""
        if upstream.setbacks:
            upstream.setbacks = 0
            self._bring_back(upstream)

    async def models(self, callers: str | None, *, timeout_seconds: float) -> dict[str, Any]:
        """The models of all servers that answer, as one list that may be shown. Those set aside are not waited for.

        Raises:
            UpstreamError: none gave a list; the first one's reason, as ``Upstream.models`` says it.
        """
        authorization = self.authorization(callers)

        async def listed(upstream: Upstream) -> dict[str, Any] | UpstreamError:
            try:
                return await upstream.models(authorization, timeout_seconds=timeout_seconds)
            except UpstreamError as problem:
                return problem

        in_service = [upstream for upstream in self.upstreams if not upstream.is_set_aside]
        answers = await asyncio.gather(*(listed(upstream) for upstream in in_service or self.upstreams))
        lists = [answer for answer in answers if not isinstance(answer, UpstreamError)]
        if not lists:
            raise next(answer for answer in answers if isinstance(answer, UpstreamError))
        return shown_models(lists)

    async def _probe(self, upstream: Upstream) -> None:
        """Ask until it answers: anything but a 5xx, for a server may want a key that only callers have."""
        try:
            while upstream.is_set_aside:
                await asyncio.sleep(_probe_wait_seconds(upstream.setbacks))
                if not upstream.is_set_aside:  # a call that found all of them set aside was answered
                    return
                try:
                    status, _ = await upstream.ask(self.authorization(None), timeout_seconds=PROBE_TIMEOUT_SECONDS)
                except UpstreamError:
                    status = 0
                if 0 < status < 500:
                    self._bring_back(upstream)
                else:
                    upstream.setbacks += 1
        finally:
            del self._probes[upstream]

    def _bring_back(self, upstream: Upstream) -> None:
        if upstream.is_set_aside:
            self.admission.bring_back(upstream.lane)
            logger.warning("upstream=%s back in service", upstream.url)


def _probe_wait_seconds(setbacks: int) -> float:
    doublings = min(setbacks - 1, 10)  # after some days the power would be greater than any float
    return min(FIRST_PROBE_SECONDS * 2.0**doublings, LAST_PROBE_SECONDS)
