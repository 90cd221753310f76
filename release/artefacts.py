"""Builds the files of a release into `dist`: `python -m release.artefacts`, by `make package`.

They have the same bytes whenever and wherever they are built from a commit: every time in them is that of
the commit, or `SOURCE_DATE_EPOCH`.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from release import docs_site
from release.runtime_requirements import locked, needed

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
CHECKSUMS: Final = "SHA256SUMS"
EXTRAS: Final = ("aws", "spark")
"""The extras that the bill of materials covers, beside the package's own requirements."""


def main() -> None:
    """Build everything, and write checksums of it that `sha256sum --check` reads."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    name = f"sparkmirror-{version()}"
    build_distributions(ROOT, DIST)
    docs_site.main()
    pack(DIST / f"{name}-docs.tar.gz", [docs_site.SITE], f"{name}-docs")
    (DIST / f"{name}.cdx.json").write_bytes(bill_of_materials())
    pack(DIST / f"{name}-deploy.tar.gz", [ROOT / "deploy", ROOT / "monitoring"], f"{name}-deploy")
    (DIST / CHECKSUMS).write_text(checksums(DIST), encoding="ascii")
    sys.stdout.write((DIST / CHECKSUMS).read_text(encoding="ascii"))


def version() -> str:
    """Return the version that `pyproject.toml` names."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def build_distributions(source: Path, folder: Path) -> None:
    """Build the wheel and the sdist of a source tree."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", folder],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(source_date())},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def source_date() -> int:
    """Return the seconds since 1970 at which the last commit was made, unless the environment says others."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    log = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def pack(archive: Path, contents: Iterable[Path], folder: str) -> None:
    """Write a gzipped tar of one folder, which has what one folder holds, or several files and folders."""
    sources = list(contents)
    top = sources[0] if len(sources) == 1 else sources[0].parent
    files = sorted(
        file for source in sources for file in (source.rglob("*") if source.is_dir() else [source])
    )
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                tar.add(file, f"{folder}/{file.relative_to(top)}", filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = source_date()
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def bill_of_materials() -> bytes:
    """Return a CycloneDX bill of the packages in `requirements.lock` that users install."""
    requirements = ROOT / "build" / "runtime.txt"
    requirements.write_text(locked(needed("sparkmirror", EXTRAS)), encoding="utf-8")
    program = str(ROOT / "build" / "tools" / "bin" / "cyclonedx-py")
    options = ("--pyproject", "pyproject.toml", "--output-reproducible")
    command = [program, "requirements", *options, str(requirements)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout


def checksums(folder: Path) -> str:
    """Return a line for each file."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
        if file.name != CHECKSUMS
    )


if __name__ == "__main__":
    main()
