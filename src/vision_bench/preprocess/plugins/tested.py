"""Versions whose processors were compared with ours, byte for byte. Any other stays with the stock processors."""

from __future__ import annotations

from collections.abc import Mapping

TESTED: dict[str, tuple[str, ...]] = {
    "transformers": ("5.18", "5.19", "5.20", "5.21"),
    "torch": ("2.13",),
    "torchvision": ("0.28",),
}
"""Release lines. One is added when `tests/vllm/processors.py` found every byte equal with it, for both families.

`make test-vllm` repeats that with 5.19. Not 5.22: there, a checkpoint that says nothing of ``cap_pixels_per_frame``
means yes, which :mod:`vision_bench.preprocess.spec` reads as no.
"""


def reason_to_refuse(versions: Mapping[str, str]) -> str | None:
    """Why these versions are not trusted, with the remedy; None when all of them were tried.

    Args:
        versions: by name of the distribution; a local build (``2.13.0+cpu``) counts as its release.
    """
    for name, lines in TESTED.items():
        found = versions.get(name, "missing")
        release = ".".join(found.split("+")[0].split(".")[:2])
        if release not in lines:
            return (
                f"{name} {found} was not tried; {', '.join(lines)} was. "
                "Compare with `vision-bench equivalence`, and report the level"
            )
    return None
