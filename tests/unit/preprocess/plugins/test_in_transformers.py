"""Switching on where it cannot be: said, and nothing changed."""

from __future__ import annotations

import importlib.util

import pytest

from vision_bench.preprocess import stock
from vision_bench.preprocess.plugins import in_transformers
from vision_bench.preprocess.plugins.tested import TESTED


def test_an_untested_version_keeps_the_stock_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning with the version and the remedy; the switch says so too, and can be left like any other."""
    monkeypatch.setattr(stock, "versions", lambda: {"transformers": "4.57.0", "torch": "2.13.0", "torchvision": "0.28"})
    with pytest.warns(
        UserWarning, match=r"stock processors stay: transformers 4\.57\.0 was not tried; .*5\.19.* was\."
    ):
        on = in_transformers.install()
    assert on.reason is not None
    assert not on.counts
    with on:
        pass


def test_without_numba_stock_is_the_faster_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy alone would slow a server down, so it is not switched on."""
    monkeypatch.setattr(stock, "versions", lambda: {name: lines[0] for name, lines in TESTED.items()})
    assert in_transformers.why_not() is None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    reason = in_transformers.why_not()
    assert reason is not None
    assert "vision-bench[preprocess]" in reason
