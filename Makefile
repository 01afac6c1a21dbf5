# vision-bench: `make demo` shows it, `make test` proves it. Both set up .venv by themselves.
# Nothing here calls apt or reaches anything but the Python package index.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
# uv must not look for a project, a managed Python or a cache that another user owns.
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/$(VENV)
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-all test-vllm docs lock format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(UV): requirements/bootstrap.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vision-bench needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

# One stamp a lock file. dev holds all of demo, so a developer's environment also serves the demo.
$(VENV)/.demo: requirements/demo.txt pyproject.toml $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/demo.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline -e .
	@touch $(VENV)/.demo $@

setup: $(VENV)/.dev ## Make .venv with everything `make test` and every CPU extra need

demo: $(VENV)/.demo ## Cut a real film, run it through the gateway, write runs/demo/report.html
	$(BIN)/python script/demo.py

check: $(VENV)/.dev ## Lint, types, import contracts, stale documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=src:experiments/01_pipeline $(BIN)/mypy script/*.py experiments/*/*.py benchmarks/*/*.py tests/install/*.py
	$(BIN)/lint-imports
	$(BIN)/python script/make_cli_docs.py --check

test: $(VENV)/.dev ## All tests that need no Debian package
	$(BIN)/pytest -m "not debian and not heavy and not vllm"

test-all: $(VENV)/.dev ## The rest too: requirements/debian.txt must be installed
	$(BIN)/pytest -m "not vllm"

test-vllm: $(VENV)/.dev ## Against a real vLLM on this CPU; builds it once, 3 GB outside the tree
	$(BIN)/python tests/vllm/environment.py
	$(BIN)/pytest -m vllm tests/vllm

docs: $(VENV)/.dev ## Regenerate docs/cli.md from the commands themselves
	$(BIN)/python script/make_cli_docs.py

lock: $(UV) ## Rewrite requirements/*.txt from pyproject.toml and requirements/*.in
	UV=$(UV) sh requirements/compile.sh

format: $(VENV)/.dev ## Apply ruff's fixes and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove .venv and caches; data/ and runs/ stay (vision-bench purge discards those)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
