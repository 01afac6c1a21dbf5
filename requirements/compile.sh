#!/bin/sh
# Rewrites every lock from pyproject.toml and requirements/*.in. Run it through `make lock`.
# UV may name the uv to use. Locks are universal: one file serves Python 3.11 to 3.13 on every platform.
set -eu
cd "$(dirname "$0")/.."
uv="${UV:-.venv/bin/uv}"
lock() {
    out="$1"
    shift
    "$uv" pip compile --quiet --universal --generate-hashes --python-version 3.11 \
        --no-emit-index-url --custom-compile-command "make lock" "$@" -o "requirements/$out.txt"
}
lock bootstrap requirements/bootstrap.in
lock base pyproject.toml requirements/build.in requirements/bootstrap.in
lock demo pyproject.toml --extra demo requirements/build.in requirements/bootstrap.in
lock dev pyproject.toml --extra demo --extra live --extra otel --extra preprocess requirements/dev.in requirements/build.in requirements/bootstrap.in
