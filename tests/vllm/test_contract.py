"""The contract of the embedded engine, held against real vLLM with the flags that it was captured with."""

from __future__ import annotations

import pytest
from tests.integration.vllm_contract import CAPTURES
from tests.vllm.contract import KNOWN_DIFFERENCES, found_differences, names
from tests.vllm.server import TRUST, VllmServer, VllmServers


@pytest.fixture(scope="module")
def server(vllm_server: VllmServers) -> VllmServer:
    return vllm_server.get(TRUST)


@pytest.mark.parametrize("name", names("01", "02", "03", "04", "05", "06", "07", "08", "10", "16"))
async def test_answers_as_captured(name: str, server: VllmServer) -> None:
    """Status, content type, keys and their order, types, token counts' places and error words are as captured."""
    assert await found_differences(name, server) == []


def test_every_known_difference_names_a_capture() -> None:
    """The table holds nothing that is not there."""
    assert [name for name in KNOWN_DIFFERENCES if not (CAPTURES / f"{name}.json").is_file()] == []
