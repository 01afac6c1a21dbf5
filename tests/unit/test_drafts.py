"""Files are put in place whole or not at all, and leave nothing beside them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from vision_bench.drafts import DRAFTS, draft_of, replacing, write_whole


def test_a_file_has_its_old_content_until_the_new_is_complete(tmp_path: Path) -> None:
    """While the draft is written, and after; a draft lies in the same folder, so that it can be renamed."""
    path = tmp_path / "result.json"
    write_whole(path, "old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
        assert draft.parent == tmp_path
        assert list(tmp_path.glob(DRAFTS)) == [draft]
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [ValueError("half"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path, failure: BaseException) -> None:
    """Of a half-written draft nothing is left, whatever stopped it."""
    path = tmp_path / "result.json"
    write_whole(path, "old")
    with pytest.raises(type(failure)), replacing(path) as draft:
        draft.write_text("ha")
        raise failure
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_that_was_never_begun_is_an_error(tmp_path: Path) -> None:
    """A block that wrote nothing does not pass for a file in place."""
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "result.json"):
        pass


def test_a_place_that_takes_no_file_is_told_and_left(tmp_path: Path) -> None:
    """A folder of that name stays; the draft is gone."""
    (tmp_path / "report.html" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"report\.html"):
        write_whole(tmp_path / "report.html", "page")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_text_is_utf8_and_bytes_are_as_they_are(tmp_path: Path) -> None:
    """No line end is translated, no character of the locale's asked for; half a character is refused before writing."""
    path = tmp_path / "text"
    write_whole(path, "한국어\r\n")
    assert path.read_bytes() == "한국어\r\n".encode()
    write_whole(path, b"\xff\x00")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud83d")
    assert path.read_bytes() == b"\xff\x00"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_share_a_draft(tmp_path: Path) -> None:
    """Each thread has its own, so neither can put the other's half in place."""
    path = tmp_path / "film.mp4"
    others: list[Path] = []
    other = threading.Thread(target=lambda: others.append(draft_of(path)))
    other.start()
    other.join()
    assert others != [draft_of(path)]
    assert draft_of(path) == draft_of(path)
