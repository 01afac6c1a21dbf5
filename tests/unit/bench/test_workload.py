"""The part that every workload file shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vision_bench.bench.workload import Common, fingerprint, read_workload
from vision_bench.errors import InvalidRequest


class Plain(Common, frozen=True, kw_only=True):
    """A kind with one key of its own."""

    prompt: str = "hello"


def file(folder: Path, text: str) -> Path:
    path = folder / "w.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_a_kind_its_values(tmp_path: Path) -> None:
    """Keys of every workload and of the kind, with defaults where nothing is said."""
    path = file(tmp_path, 'name = "w"\nkind = "plain"\nprompt = "뭐가 보여?"\nregion = "home"\n')
    workload = read_workload(path).checked(Plain)
    assert (workload.name, workload.prompt, workload.region, workload.timeout_seconds) == (
        "w",
        "뭐가 보여?",
        "home",
        300,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('kind = "plain"\n', "name"),
        ('name = "w"\n', "does not say its kind"),
        ('name = "w"\nkind = 3\n', "does not say its kind"),
        ('name = "w"\nkind = "plain"\npromt = "x"\n', "did you mean 'prompt'"),
        ('name = "w"\nkind = "plain"\nzzz = 1\n', "known are"),
        ('name = "w"\nkind = "plain"\nprompt = 3\n', "prompt: expected str, got int"),
        ('name = ""\nkind = "plain"\n', "name is empty"),
        ('name = "w"\nkind = "plain"\ntimeout_seconds = 0\n', "timeout_seconds is 0"),
        ('name = "w"\nkind = "plain"\nexpected_rate = -1\n', "expected_rate"),
        ('name = "w"\nkind = "plain"\nexpected_concurrency = 0\n', "expected_concurrency"),
        ("name = \n", "not TOML"),
    ],
)
def test_a_bad_file_is_named_with_its_key_and_remedy(tmp_path: Path, text: str, says: str) -> None:
    """What is wrong stands in the message, with the file."""
    with pytest.raises(InvalidRequest, match=says) as caught:
        read_workload(file(tmp_path, text)).checked(Plain)
    assert "w.toml" in str(caught.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    """Neither is a traceback."""
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_workload(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_workload(tmp_path / "b.toml")


def of(**values: Any) -> str:
    return fingerprint(Plain(**{"name": "w", "kind": "plain"} | values), {"clip": "abc"})


def test_the_fingerprint_is_of_what_is_sent() -> None:
    """Any value or file changes it; the same values give the same one."""
    assert of() == of(prompt="hello")
    assert len({of(), of(prompt="other"), of(region="x"), of(name="v")}) == 4
    assert of() != fingerprint(Plain(name="w", kind="plain"), {"clip": "abd"})


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """So a workload can be run from anywhere."""
    path = file(tmp_path, 'name = "w"\nkind = "plain"\n')
    assert read_workload(path).resolve("clips") == tmp_path / "clips"
    assert read_workload(path).resolve("/clips") == Path("/clips")
