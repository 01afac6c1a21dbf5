"""client.address: a bad address is one clear error, before anybody connects."""

from __future__ import annotations

import pytest

from vision_bench.client.address import check_address
from vision_bench.client.doctor import check_target
from vision_bench.client.gateway import GatewayClient
from vision_bench.client.sender import open_sender
from vision_bench.errors import InvalidRequest

BAD = [
    *("http://[", "http://[::1", "http://127.0.0.1:99999", "http://127.0.0.1:0", "http://x:ab", "http://"),
    *("http://\0", "http://a..b", "http://" + "a" * 64, "http://\udcff", "http://" + "a" * 70_000, "http://["),
]


@pytest.mark.parametrize("url", [*BAD, "ftp://x", "localhost:8001", ""])
def test_a_bad_address_is_refused_in_words(url: str) -> None:
    """Wherever one is given."""
    for use in (check_address, open_sender, GatewayClient):
        with pytest.raises(InvalidRequest, match=r"no address of a server.*give one such as"):
            use(url)


@pytest.mark.parametrize("url", [*BAD, "ftp://x"])
async def test_doctor_refuses_it_too(url: str) -> None:
    """It may leave the scheme out, nothing else."""
    with pytest.raises(InvalidRequest, match="no address of a server"):
        await check_target(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8001", "https://h/v1", "http://[::1]:80", "http://é.kr:80/v1"])
def test_a_good_address_is_taken_as_it_is(url: str) -> None:
    """Names, numbers, ports and paths."""
    assert check_address(url) == url


@pytest.mark.parametrize("key", ["schlüssel", "a\nb", "\udcff"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str) -> None:
    """A key pasted with its line end is the usual one."""
    with pytest.raises(InvalidRequest, match="API key") as caught:
        GatewayClient(api_key=key)
    assert key not in str(caught.value)
