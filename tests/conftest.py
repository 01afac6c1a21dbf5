"""What holds for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: a busy machine is not a bug. The same examples every time, so that a change is judged by itself;
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
