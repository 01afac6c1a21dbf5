"""What holds for every test."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that: tests that interrupt a
# program would wait for ever. A handler here is the default in every program started from here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a busy machine is not a bug. The same examples every time, so that a change is judged by itself;
# HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# A machine that sends its programs' spans somewhere must not be sent those of tests.
for name in [name for name in os.environ if name.startswith("OTEL_")]:
    del os.environ[name]
