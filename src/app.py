"""The gateway under the name that uvicorn is given: ``PYTHONPATH=src uvicorn app:app --port 8001``."""

import sys

from vision_bench.errors import InvalidSettings
from vision_bench.gateway.application import create_app
from vision_bench.gateway.logs import log_to
from vision_bench.gateway.serving import prepare_process
from vision_bench.gateway.settings import load_settings

prepare_process()
try:
    settings = load_settings()
    app = create_app(settings)
except InvalidSettings as problem:  # one line; uvicorn would print a traceback
    sys.stderr.write(f"error: {problem}\n")
    sys.exit(problem.exit_code)
log_to(sys.stderr, form=settings.gateway_log_format)
