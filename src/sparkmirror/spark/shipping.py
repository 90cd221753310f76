"""Decides how Python packages reach executors: which settings ship them, and which command runs them.

Modules of users' functions are added to a session that runs, in zips.
"""

import logging
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.domain.errors import ConfigError
from sparkmirror.spark.executor_archive import (
    FOLDER,
    LAUNCHER,
    PYTHON_VARIABLE,
    archive_contents,
    cached_archive,
)

_log = logging.getLogger(__name__)

ARCHIVE: Final = "spark.sparkmirror.archive"
"""Ours: `auto`, `none` where executors have sparkmirror installed, or an archive's path or URL."""
_PYTHON: Final = "spark.pyspark.python"


class ShippedModules:
    """Knows the packages that executors have beside their own."""

    def __init__(self) -> None:
        self._names = {"sparkmirror"}

    def missing(self, modules: Iterable[str]) -> Sequence[str]:
        """The packages of these modules that were not asked for before."""
        names = sorted({name.partition(".")[0] for name in modules} - self._names)
        self._names.update(names)
        return names


class Shipped(NamedTuple):
    """The command that executors run as Python, and settings to add to the user's."""

    python: str
    settings: Mapping[str, str]


def own_archive() -> Path:
    """The archive of this installation. Raises SparkmirrorError."""
    contents = archive_contents()
    file = cached_archive(
        contents, lambda: _log.info("packing what executors need of Python; kept for later starts")
    )
    _log.info("executors get their Python packages from %s, %.0f MB", file, file.stat().st_size / 1e6)
    return file


def shipped(settings: Mapping[str, str], make_archive: Callable[[], Path] = own_archive) -> Shipped:
    """Decide what to ship, by the master and the user's settings of Python and archives.

    `make_archive` is called where the user brings none. Raises ConfigError for an archive that doesn't exist,
    SparkmirrorError when none can be made.
    """
    master = settings["spark.master"]
    if master.startswith("local"):
        return Shipped(sys.executable, {})
    python = settings.get(_PYTHON) or os.environ.get("PYSPARK_PYTHON")
    archive = settings.get(ARCHIVE, "auto")
    if archive == "none":
        return Shipped(python or sys.executable, {})
    # The driver ships `spark.archives` to every executor; YARN ships its own setting to every machine.
    key = "spark.yarn.dist.archives" if master.startswith("yarn") else "spark.archives"
    archives = [each for each in settings.get(key, "").split(",") if each]
    if not any(each.endswith(f"#{FOLDER}") for each in archives):
        place = str(make_archive()) if archive == "auto" else _checked(archive)
        archives.append(f"{place}#{FOLDER}")
    added = {key: ",".join(archives)}
    if python:
        added[f"spark.executorEnv.{PYTHON_VARIABLE}"] = python
    return Shipped(LAUNCHER, added)


def _checked(archive: str) -> str:
    if "://" not in archive and not Path(archive).is_file():
        raise ConfigError(ARCHIVE, archive, "no such file; `sparkmirror archive` makes one")
    return archive


def zipped_module(module: str) -> Path:
    """The Python files of an importable module's topmost package in a zip, for executors. Raises OSError.

    Files that are compiled for one machine are not among them.
    """
    name = module.partition(".")[0]
    spec = find_spec(name)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    file = Path(tempfile.mkdtemp(prefix="sparkmirror-")) / f"{name}.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in map(Path, places):
            for each in sorted(folder.rglob("*.py")):
                archive.write(each, Path(name) / each.relative_to(folder))
        if spec is not None and not places and spec.origin is not None:
            archive.write(spec.origin, Path(spec.origin).name)
    return file
