"""Tokens of a stream: what they allow, on what, and for how long."""

from __future__ import annotations

import pytest

from vision_bench.live.tokens import Tokens

NOW_NS = 5_000_000_000


def test_a_token_allows_one_thing_on_one_stream_for_its_time() -> None:
    """Another scope, another stream, and the moment at which it expires are refused."""
    now = [NOW_NS]
    tokens = Tokens(b"s" * 32, clock=lambda: now[0])
    token = tokens.issue("publish", "cam", seconds=10)
    assert tokens.admits(token, "publish", "cam")
    assert not tokens.admits(token, "view", "cam")
    assert not tokens.admits(token, "publish", "other")
    now[0] += 10_000_000_000 - 1
    assert tokens.admits(token, "publish", "cam")
    now[0] += 1
    assert not tokens.admits(token, "publish", "cam")


def test_another_server_knows_none_of_them() -> None:
    """What another secret signed is no token here; secrets are random by themselves."""
    token = Tokens().issue("publish", "cam", seconds=10)
    assert not Tokens().admits(token, "publish", "cam")


@pytest.mark.parametrize(
    "token", ["", ".", "publish", "publish.9", "publish..x", "publish.é.x", "publish.-1.x", "x" * 999]
)
def test_nonsense_is_no_token(token: str) -> None:
    """Nothing raises and nothing is let in."""
    assert not Tokens(clock=lambda: NOW_NS).admits(token, "publish", "cam")


def test_a_longer_life_cannot_be_written_in() -> None:
    """The time is signed: changed by one digit, the token is none."""
    tokens = Tokens(clock=lambda: NOW_NS)
    scope, expires, signature = tokens.issue("view", "cam", seconds=10).split(".")
    assert not tokens.admits(f"{scope}.{int(expires) + 1}.{signature}", "view", "cam")
