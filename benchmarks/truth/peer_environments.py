"""The environments of the other tools, one each, built once outside the tree.

    python -m benchmarks.truth.peer_environments aiperf guidellm vllm     # 7 GB and ten minutes, the first time

vLLM's is the one that ``make test-vllm`` keeps.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.environments import NotAvailable, ensure
from benchmarks.truth.peers import Program
from tests.vllm import environment as vllm

PACKAGES = {"aiperf": ("aiperf==0.13.0",), "guidellm": ("guidellm[perf,vision]==0.8.1",)}
VERSIONS = {"aiperf": "0.13.0", "guidellm": "0.8.1", "vllm": "0.32.0"}


def program(name: str, say: Callable[[str], None]) -> Program:
    """The command of a tool, installed first if it is not there yet.

    Raises:
        NotAvailable: it cannot be installed here.
    """
    if name == "vllm":
        try:
            found = vllm.ensure(say)
        except (vllm.CannotBuild, subprocess.CalledProcessError) as problem:
            raise NotAvailable(str(problem)) from problem
        return Program(name, VERSIONS[name], found.vllm)
    packages = PACKAGES[name]
    programs = ensure(f"{name}-{vllm.fingerprint(*packages)}", packages, say)
    return Program(name, VERSIONS[name], programs / name)


def main() -> int:
    """Build what is named; 4 when one cannot be."""
    status = 0
    for name in sys.argv[1:] or VERSIONS:
        try:
            print(program(name, lambda words: print(words, file=sys.stderr, flush=True)).path)
        except NotAvailable as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            status = 4
    return status


if __name__ == "__main__":
    sys.exit(main())
