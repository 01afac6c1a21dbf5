"""One HTTP server as every client here calls it: bounded retries until an answer begins, each failure with a type."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

import httpx

from vision_bench.client.address import check_address
from vision_bench.client.retry import RetryBudget, RetryRule, read_retry_after
from vision_bench.errors import (
    BrokenStream,
    ConnectFailed,
    HttpFailure,
    InvalidRequest,
    UpstreamError,
    UpstreamTimeout,
)
from vision_bench.wire.authorization import bearer
from vision_bench.wire.chat import error_message

# uvicorn closes an idle connection after 5 s; leaving earlier avoids sending into a closing one.
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=2.0)
CONNECT_SECONDS = 5.0


class Caller:
    """One connection pool and one retry budget; tasks share it.

    Args:
        url: the server's root.
        timeout_seconds: longest silence between two bytes of an answer.
        api_key: sent as a bearer token; never logged.
        transport: a stand-in for the network, for tests.
        draw: source of jitter; seed it for repeatable waits.
        sleep: how to wait, for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        budget: RetryBudget | None = None,
        api_key: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        draw: random.Random | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.url = check_address(url).rstrip("/")
        self._budget = budget or RetryBudget()
        self._draw = draw or random.Random()  # noqa: S311  # jitter is no secret
        self._sleep = sleep
        self.http = httpx.AsyncClient(
            base_url=self.url,
            timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS, pool=None),
            limits=_LIMITS,
            transport=transport,
            headers=bearer(api_key),
            trust_env=False,  # a proxy variable must not send clips of a loopback test elsewhere
        )

    @contextlib.asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        rule: RetryRule,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        on_try: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[httpx.Response]:
        """The first response that is not to be retried, its body not yet read; leaving the block ends the call.

        Args:
            on_try: called before each attempt.

        Raises:
            ConnectFailed, UpstreamTimeout, HttpFailure, BrokenStream: after the retries that ``rule`` allows.
        """
        self._budget.note_request()
        failures = 0
        async with contextlib.AsyncExitStack() as stack:
            while True:
                on_try()
                attempt = self.http.stream(method, path, content=content, headers=headers)
                try:
                    with transport_errors(self.url):
                        response = await stack.enter_async_context(attempt)
                        if response.is_success:
                            break
                        await response.aread()
                    problem: UpstreamError = failure_of(response)
                except (ConnectFailed, BrokenStream) as failed:
                    problem = failed
                failures += 1
                wait_seconds = rule.wait_seconds(problem, failures, self._draw)
                if wait_seconds is None or not self._budget.take():
                    raise problem
                await stack.aclose()
                await self._sleep(wait_seconds)
            yield response

    async def close(self) -> None:
        """Close all connections; calls still under way end."""
        await self.http.aclose()


@contextlib.contextmanager
def transport_errors(url: str = "the server") -> Iterator[None]:
    """httpx's failures as ours. A connection that was never made may always be retried, so it is ConnectFailed."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
        raise ConnectFailed(
            f"nobody answers at {url} ({str(problem) or type(problem).__name__}); is it running?"
        ) from problem
    except httpx.TimeoutException as problem:
        raise UpstreamTimeout(f"{url} was silent for too long ({type(problem).__name__})") from problem
    except httpx.InvalidURL as problem:
        raise InvalidRequest(f"{url} is no usable address: {problem}") from problem
    except httpx.HTTPError as problem:
        raise BrokenStream(f"the connection to {url} broke ({type(problem).__name__}: {problem})") from problem


def failure_of(response: httpx.Response) -> HttpFailure:
    """An error status, its body read, as an error."""
    retry_after = read_retry_after(response.headers.get("retry-after"), now_seconds=time.time())
    body = response.content
    return HttpFailure(response.status_code, error_message(body), body=body, retry_after_seconds=retry_after)
