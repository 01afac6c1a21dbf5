"""An environment of its own for LiteLLM's proxy, outside the tree, built once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.environments import ensure

REQUIREMENT = "litellm[proxy]"


def litellm_program(say: Callable[[str], None]) -> Path:
    """The ``litellm`` command, installed first if it is not there yet.

    Raises:
        NotAvailable: pip could not install it.
    """
    return ensure("litellm", [REQUIREMENT], say) / "litellm"
