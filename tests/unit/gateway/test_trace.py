"""What is a trace context, by the words of the W3C's recommendation."""

from __future__ import annotations

import pytest

from vision_bench.gateway.trace import trace_of

ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{ID}-b7ad6b7169203331-01"


def headers(parent: str | None = PARENT, *states: str) -> list[tuple[bytes, bytes]]:
    found = [(b"host", b"x")] + ([] if parent is None else [(b"traceparent", parent.encode("latin-1"))])
    return found + [(b"tracestate", state.encode("latin-1")) for state in states]


@pytest.mark.parametrize(
    "parent", [PARENT, PARENT[:-2] + "ff", f"01-{PARENT[3:]}", f"cc-{PARENT[3:]}-what-ever is next"]
)
def test_a_valid_parent_goes_on_as_it_came(parent: str) -> None:
    """Any flags; a later version may say more behind a dash."""
    trace = trace_of(headers(parent))
    assert trace is not None
    assert (trace.trace_id, trace.headers) == (ID, {"traceparent": parent})


@pytest.mark.parametrize(
    "parent",
    [
        None,
        "",
        f"ff-{PARENT[3:]}",
        f"{PARENT}-more",
        f"{PARENT}.",
        f"cc-{PARENT[3:]}.what",
        PARENT.upper(),
        PARENT[:-1],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{ID}-{'0' * 16}-01",
        f"00-{ID}-b7ad6b716920333g-01",
        f" {PARENT}",
        f"{PARENT}\n",
        f"cc-{PARENT[3:]}-a\r\nX-Evil: 1",
        f"cc-{PARENT[3:]}-\xe9",
    ],
)
def test_what_is_no_parent_is_dropped_with_its_state(parent: str | None) -> None:
    """Zeros, capitals, other lengths, the forbidden version: as if nothing had been sent."""
    assert trace_of(headers(parent, "a=1")) is None


def test_two_parents_are_none() -> None:
    """Nobody could tell which one is meant."""
    assert trace_of(headers() + headers()) is None


@pytest.mark.parametrize(
    ("states", "sent"),
    [
        (["a=1"], "a=1"),
        (["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        (["a=1", "b=2"], "a=1,b=2"),
        (["a=1 , ,\tb=2"], "a=1 , ,\tb=2"),
        (["fw529a3039@dt=FfAAAAA"], "fw529a3039@dt=FfAAAAA"),
        (["a= b c!"], "a= b c!"),
        ([",".join(f"k{n}=1" for n in range(32))], ",".join(f"k{n}=1" for n in range(32))),
        ([",".join(f"k{n}=1" for n in range(33))], None),
        (["a=1,a=2"], None),
        (["A=1"], None),
        (["a"], None),
        (["a="], None),
        (["a=b=c"], None),
        ([f"a={'x' * 257}"], None),
        (["a=\xe9"], None),
        (["a=\x01"], None),
        ([""], None),
        ([" , "], None),
    ],
)
def test_a_state_that_is_not_valid_is_left_out_alone(states: list[str], sent: str | None) -> None:
    """Several headers are one list; a bad list does not cost the parent."""
    trace = trace_of(headers(PARENT, *states))
    assert trace is not None
    assert trace.headers == {"traceparent": PARENT} | ({} if sent is None else {"tracestate": sent})
