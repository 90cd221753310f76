"""Builds the files of a release into `dist`: `python -m release.artefacts`, by `make package`.

The wheel and the sdist have the same bytes whenever and wherever they are built from a commit: every time in
them is the commit's, or `SOURCE_DATE_EPOCH`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
CHECKSUMS: Final = "SHA256SUMS"


def main() -> None:
    """Build everything, and write checksums of it that `sha256sum --check` reads."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    build_distributions(ROOT, DIST)
    (DIST / CHECKSUMS).write_text(checksums(DIST), encoding="ascii")
    sys.stdout.write((DIST / CHECKSUMS).read_text(encoding="ascii"))


def build_distributions(source: Path, folder: Path) -> None:
    """Build the wheel and the sdist of a source tree."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", folder],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": source_date()},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def source_date() -> str:
    """Return the seconds since 1970 at which the last commit was made, unless the environment says others."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    log = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def checksums(folder: Path) -> str:
    """Return a line for each file."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
        if file.name != CHECKSUMS
    )


if __name__ == "__main__":
    main()
