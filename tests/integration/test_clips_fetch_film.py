"""script/fetch_film.py with a package made on the spot: what it keeps, what it refuses, what it leaves."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FILM = b"a film" * 1000


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with sums that fit the package below, and pip replaced by writing that package."""
    spec = importlib.util.spec_from_file_location("fetch_film", ROOT / "script" / "fetch_film.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PACKAGE_SHA256", hashlib.sha256(package(FILM, module)).hexdigest())
    monkeypatch.setattr(module, "FILM_SHA256", hashlib.sha256(FILM).hexdigest())
    monkeypatch.setattr(module, "FILM_BYTES", len(FILM))
    return module


def package(film: bytes, module: ModuleType) -> bytes:
    """A source package with the film where the real one has it."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(zipfile.ZipInfo(module.MEMBER), film)
    outer = io.BytesIO()
    with tarfile.open(fileobj=outer, mode="w") as tar:
        entry = tarfile.TarInfo(module.ARCHIVE)
        entry.size = len(inner.getvalue())
        tar.addfile(entry, io.BytesIO(inner.getvalue()))
    return outer.getvalue()


def give(module: ModuleType, data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """pip brings ``data``; returns the folders that it was asked to write to."""
    asked: list[Path] = []

    def download(folder: Path) -> Path:
        asked.append(folder)
        path = folder / "package.tar.gz"
        path.write_bytes(data)
        return path

    monkeypatch.setattr(module, "download", download)
    return asked


def run(module: ModuleType, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["fetch_film.py", "--data-dir", str(data_dir)])
    status = module.main()
    assert isinstance(status, int)
    return status


def test_it_is_fetched_once(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The film lies at raw/docu/bbb.mp4 and nothing beside it; a second call asks for nothing."""
    asked = give(script, package(FILM, script), monkeypatch)
    assert [run(script, tmp_path, monkeypatch) for _ in range(2)] == [0, 0]
    assert len(asked) == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "raw/docu/bbb.mp4"]
    assert (tmp_path / "raw/docu/bbb.mp4").read_bytes() == FILM


def test_a_damaged_film_is_fetched_again(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same size, another byte: its checksum gives it away."""
    give(script, package(FILM, script), monkeypatch)
    film = tmp_path / "raw/docu/bbb.mp4"
    film.parent.mkdir(parents=True)
    film.write_bytes(b"x" + FILM[1:])
    assert run(script, tmp_path, monkeypatch) == 0
    assert film.read_bytes() == FILM


def test_another_package_is_refused(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4, both checksums are said, and nothing is left."""
    give(script, package(b"something else", script), monkeypatch)
    assert run(script, tmp_path, monkeypatch) == 4
    assert f"not {script.PACKAGE_SHA256}" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_index_that_has_nothing_is_said(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4 and pip's own reason; the real pip is asked, and told of no index."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert run(script, tmp_path, monkeypatch) == 4
    said = capsys.readouterr().err
    assert said.startswith("error: the film cannot be had: pip could not download moviepy-2.2.1 (ERROR")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
