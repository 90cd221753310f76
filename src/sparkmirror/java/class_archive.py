"""Makes archives of loaded classes, with which a JVM starts in about half the time (AppCDS, JEP 350).

An archive fits one folder of jars and one Java installation: its name is made of their paths and of when they
were installed. A JVM checks that it fits, and starts without it if not. Archives are optional:
`sparkmirror prepare` makes them.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from sparkmirror.domain.errors import JarsError
from sparkmirror.java.folders import cache_folder, locked


class ClassArchive:
    """The archive for one program; it may not exist yet."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def of(cls, name: str, jars: Path, environ: Mapping[str, str] = os.environ) -> Self:
        """Return the archive of a program with this class path, run by Java of JAVA_HOME, else of PATH."""
        java = _java(environ)
        place = _digest(java, jars)
        age = _digest(_written_at(java), _written_at(jars))
        return cls(cache_folder(environ) / "classes" / f"{name}-{place}-{age}.jsa")

    @property
    def exists(self) -> bool:
        return self.file.exists()

    @property
    def options(self) -> tuple[str, ...]:
        """The JVM options that use it; none if it doesn't exist."""
        return (f"-XX:SharedArchiveFile={self.file}",) if self.exists else ()

    def make(self, run: Callable[[str], object]) -> None:
        """Let `run` start a JVM with an option and end it in order; the JVM then writes its loaded classes.

        Raises JarsError when it wrote nothing, as Javas without an archive of their own do.
        """
        partial = self.file.with_suffix(".partial")
        with locked(self.file.with_suffix(".lock"), lambda: None):
            if self.exists:
                return
            try:
                run(f"-XX:ArchiveClassesAtExit={partial}")
                if not partial.exists():
                    raise JarsError(f"Java wrote no archive of its classes to {partial}. It is not needed.")
                partial.rename(self.file)
                self._remove_older()
            finally:
                partial.unlink(missing_ok=True)

    def _remove_older(self) -> None:
        """Archives of the same jars and Java; they are large, and no JVM can use them any more."""
        place = self.file.stem.rpartition("-")[0]
        for file in self.file.parent.glob(f"{place}-*"):
            if file.stem != self.file.stem:
                file.unlink(missing_ok=True)


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:12]


def _written_at(path: Path | None) -> int:
    """Changes when a folder is installed again, as the times of its jars, which a JVM compares."""
    try:
        return 0 if path is None else path.stat().st_mtime_ns
    except OSError:
        return 0


def _java(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java", path=environ.get("PATH"))
    try:
        return Path(found or "java").resolve(strict=True)
    except OSError:
        return None
