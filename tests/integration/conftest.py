"""Which event loop a test runs in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_BOTH = {"test_gateway_ahead", "test_gateway_upstream_connections"}
"""uvicorn takes uvloop wherever it is installed. A connection that has ended raises there at what asyncio's own loop
lets pass, so what writes to connections that may have ended is tried in both."""


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops of one test, by the name that stands in its id."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem in _BOTH:
        loops["uvloop"] = uvloop.new_event_loop
    return loops
