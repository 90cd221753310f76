"""Fetches the jars of Kafka, its tools and Java's own MirrorMaker 2 once, verifies and caches them.

PySpark ships Ivy, and Ivy run as a program resolves Maven dependencies; so Java and PySpark are all that a
real broker needs. Each set's SHA-256 sums lie beside this file. A set is complete or absent: it is fetched
into a folder of its own, verified, then renamed.
"""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from sparkmirror.domain.errors import JarsError
from sparkmirror.java.find_java import find_java
from sparkmirror.java.folders import cache_folder, locked
from sparkmirror.java.ivy import Ivy, Module

KAFKA_VERSION = "4.3.1"
# Kafka's own downloads hold this binding too; without one neither a broker nor MirrorMaker writes a log.
_LOGGING = Module("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")


@dataclass(frozen=True, slots=True)
class JarSet:
    """Modules that are fetched together with everything they depend on. `name` is also its folder's."""

    name: str
    modules: tuple[Module, ...]
    sums: Mapping[str, str]
    """SHA-256 by file name: exactly these files make up the set."""


def recorded_sums(name: str) -> dict[str, str]:
    """The sums recorded for a set, read from this package (the format of sha256sum)."""
    lines = files(__package__).joinpath(f"{name}.sha256").read_text(encoding="ascii").splitlines()
    return {file: digest for digest, file in (line.split() for line in lines)}


def kafka_jars() -> JarSet:
    """The jars of a broker."""
    name = f"kafka-{KAFKA_VERSION}"
    broker = Module("org.apache.kafka", "kafka_2.13", KAFKA_VERSION)
    return JarSet(name, (broker, _LOGGING), recorded_sums(name))


def mirror_maker_jars() -> JarSet:
    """The jars of `org.apache.kafka.connect.mirror.MirrorMaker`, to compare with."""
    name = f"mirror-maker-{KAFKA_VERSION}"
    mirror = Module("org.apache.kafka", "connect-mirror", KAFKA_VERSION)
    return JarSet(name, (mirror, _LOGGING), recorded_sums(name))


def kafka_tools_jars() -> JarSet:
    """The jars of Kafka's command-line tools, without a binding for their log: a broker's have one."""
    name = f"kafka-tools-{KAFKA_VERSION}"
    return JarSet(name, (Module("org.apache.kafka", "kafka-tools", KAFKA_VERSION),), recorded_sums(name))


def _silent(_text: str) -> None: ...


def ensure_jars(
    jar_set: JarSet,
    *,
    cache: Path | None = None,
    ivy: Ivy | None = None,
    on_progress: Callable[[str], None] = _silent,
) -> Path:
    """The folder that holds the set, fetched first if need be (`java -cp 'FOLDER/*'`).

    Raises JarsError when it can't be fetched or is not what was recorded, NotInstalledError without a Java.
    """
    home = (cache or cache_folder()) / "jars"
    folder = home / jar_set.name
    if _is_complete(folder, jar_set):
        return folder
    waiting = "Another process is fetching the same jars, waiting for it …"
    with locked(home / f"{jar_set.name}.lock", lambda: on_progress(waiting)) as lock:
        if not _is_complete(folder, jar_set):
            _install(jar_set, folder, ivy or Ivy.of_pyspark(find_java()), lock, on_progress)
    return folder


def _is_complete(folder: Path, jar_set: JarSet) -> bool:
    # Sums were checked before the folder got its name; names are enough to see that no jar was deleted.
    return folder.is_dir() and {file.name for file in folder.iterdir()} == set(jar_set.sums)


def _install(
    jar_set: JarSet,
    folder: Path,
    ivy: Ivy,
    lock: int,
    on_progress: Callable[[str], None],
) -> None:
    """Fetch beside `folder`, verify, rename. Leftovers of a killed or failed try are used or removed."""
    work = folder.with_name(f"{jar_set.name}.partial")
    shutil.rmtree(work / "jars", ignore_errors=True)
    work.mkdir(exist_ok=True)
    progress = _IvyProgress(jar_set, on_progress)
    jars = ivy.retrieve(jar_set.modules, work, keep_open=lock, on_line=progress)
    try:
        _verify(jars, jar_set)
        shutil.rmtree(folder, ignore_errors=True)
        jars.rename(folder)
    finally:
        shutil.rmtree(work)
    on_progress(f"Fetched and verified {len(jar_set.sums)} jars of {jar_set.name}")


def _verify(jars: Path, jar_set: JarSet) -> None:
    found = {file.name: _sha256(file) for file in sorted(jars.iterdir())}
    faults = [f"{name} is missing" for name in jar_set.sums if name not in found]
    faults += [f"{name} does not belong to it" for name in found if name not in jar_set.sums]
    faults += [
        f"{name} has SHA-256 {found[name]} instead of {expected}"
        for name, expected in jar_set.sums.items()
        if found.get(name, expected) != expected
    ]
    if faults:
        raise JarsError(
            f"The jars of {jar_set.name} are not the recorded ones: {'; '.join(faults)}. Nothing was "
            "installed; try again, and check the repository or proxy that serves them if it happens twice."
        )


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _IvyProgress:
    """Ivy's lines, counted: `found` for each module resolved, `SUCCESSFUL` for each jar fetched."""

    def __init__(self, jar_set: JarSet, on_progress: Callable[[str], None]) -> None:
        self._set = jar_set
        self._on_progress = on_progress
        self._resolved = 0
        self._fetched = 0

    def __call__(self, line: str) -> None:
        if line.startswith("found "):
            self._resolved += 1
            self._report("resolved", self._resolved)
        elif "[SUCCESSFUL ]" in line:
            self._fetched += 1
            self._report("fetched", self._fetched)

    def _report(self, done: str, count: int) -> None:
        self._on_progress(f"Fetching {self._set.name} (once): {done} {count}/{len(self._set.sums)} jars")
