"""The vLLMs behind the gateway: their addresses, their sockets, and what they say of themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from vision_bench.errors import HttpFailure, UpstreamError, UpstreamTimeout
from vision_bench.gateway.transport import Transport
from vision_bench.wire.chat import error_message
from vision_bench.wire.models import shown_models

MODELS_PATH = "/models"

LIST_LIMIT_BYTES = 1024 * 1024
"""A model list. vLLM writes half a kilobyte a model."""


class Upstream:
    """One vLLM.

    Attributes:
        url: its /v1 endpoint.
        transport: its sockets.
    """

    def __init__(self, url: str, transport: Transport) -> None:
        self.url = url
        self.transport = transport

    async def models(self, authorization: str | None, *, timeout_seconds: float) -> object:
        """Its model list as it wrote it, parsed. Takes no permit: vLLM answers it beside its work.

        Raises:
            HttpFailure: it answered with an error status.
            ConnectFailed, BrokenStream: see the transport.
            UpstreamTimeout: no whole answer in time.
            UpstreamError: the answer is no JSON, or longer than ``LIST_LIMIT_BYTES``.
        """
        headers = {} if authorization is None else {"Authorization": authorization}
        try:
            async with asyncio.timeout(timeout_seconds), self.transport.get(MODELS_PATH, headers) as answer:
                status, body = answer.status, b""
                while piece := await answer.read_some():
                    body += piece
                    if len(body) > LIST_LIMIT_BYTES:
                        raise UpstreamError(f"the model list of {self.url} is longer than {LIST_LIMIT_BYTES} bytes")
        except TimeoutError:
            raise UpstreamTimeout(f"{self.url} sent no model list in {timeout_seconds:g} s") from None
        if status >= 400:
            raise HttpFailure(status, error_message(body) if body.strip() else "no reason given", body=body)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as problem:
            raise UpstreamError(
                f"{self.url} answers GET {MODELS_PATH} with {status} and no JSON ({problem})"
            ) from problem


class Fleet:
    """Every vLLM that ``VLLM_BASE_URL`` names."""

    def __init__(self, upstreams: Sequence[Upstream], *, api_key: str | None = None) -> None:
        self.upstreams = tuple(upstreams)
        self._api_key = api_key

    def authorization(self, callers: str | None) -> str | None:
        """The header that goes to vLLM: VLLM_API_KEY if there is one, else the ``callers`` own."""
        return callers if self._api_key is None else f"Bearer {self._api_key}"

    async def models(self, authorization: str | None, *, timeout_seconds: float) -> dict[str, Any]:
        """The models of all servers that answer, as one list that may be shown.

        Raises:
            UpstreamError: none gave a list; the first one's reason, as ``Upstream.models`` says it.
        """
        asked = [
            self._list_of(upstream, self.authorization(authorization), timeout_seconds) for upstream in self.upstreams
        ]
        answers = await asyncio.gather(*asked)
        lists = [answer for answer in answers if isinstance(answer, dict)]
        problems = [answer for answer in answers if isinstance(answer, UpstreamError)]
        if not lists:
            raise problems[0]
        return shown_models(lists)

    async def _list_of(
        self, upstream: Upstream, authorization: str | None, timeout_seconds: float
    ) -> dict[str, Any] | UpstreamError:
        try:
            body = await upstream.models(authorization, timeout_seconds=timeout_seconds)
            return shown_models([body])
        except ValueError as problem:
            return UpstreamError(f"{upstream.url}{MODELS_PATH} answers with no model list: {problem}")
        except UpstreamError as problem:
            return problem
