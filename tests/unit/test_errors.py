"""The tree in the docstring is the tree in the code."""

from __future__ import annotations

import re

from vision_bench import errors


def subclasses(root: type) -> set[str]:
    return {root.__name__} | {name for child in root.__subclasses__() for name in subclasses(child)}


def test_the_drawn_tree_is_the_real_one() -> None:
    """Every class of the module stands in the picture, and the picture holds nothing else."""
    drawn = set(re.findall(r"[├└]── (\w+)|^\s+(VisionBenchError)$", errors.__doc__ or "", re.MULTILINE))
    ours = {name for name in subclasses(errors.VisionBenchError) if hasattr(errors, name)}
    assert {one or other for one, other in drawn} == ours


def test_a_missing_extra_says_how_to_get_it() -> None:
    """The remedy is a command line."""
    problem = errors.MissingExtra("baseline", "the baseline model")
    assert str(problem) == "the baseline model needs the extra 'baseline': pip install 'vision-bench[baseline]'"
    assert problem.exit_code == 4
