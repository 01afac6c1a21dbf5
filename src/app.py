"""The gateway under the name that uvicorn is given: ``PYTHONPATH=src uvicorn app:app --port 8001``."""

import sys

from vision_bench.errors import InvalidSettings
from vision_bench.gateway.application import create_app
from vision_bench.gateway.serving import keep_freed_memory, log_to_stderr

log_to_stderr()
keep_freed_memory()
try:
    app = create_app()
except InvalidSettings as problem:  # one line; uvicorn would print a traceback
    sys.stderr.write(f"error: {problem}\n")
    sys.exit(problem.exit_code)
