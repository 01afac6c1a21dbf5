"""A key in a header."""

from __future__ import annotations

import pytest

from vision_bench.errors import InvalidRequest
from vision_bench.wire.authorization import bearer


def test_a_key_is_a_bearer_token() -> None:
    """No key, no header."""
    assert bearer("sk-1") == {"Authorization": "Bearer sk-1"}
    assert bearer(None) == bearer("") == {}


@pytest.mark.parametrize("key", ["sk-1\n", "sk\r\nX-Other: 1", "schlüssel", "sk\x00"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str) -> None:
    """A line end would begin another header."""
    with pytest.raises(InvalidRequest, match="no header can carry") as caught:
        bearer(key)
    assert key not in str(caught.value)
