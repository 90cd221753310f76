"""Runs as a process of this machine what a compose file or a manifest says of a container of our image.

The container's words, environment and mounts are taken as they are written, by the entry of the image. Only
places differ, as all of them are on one machine: paths in the container are folders of the test, and the
addresses of other containers are those of the processes that stand for them.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.clusters.processes import start_process
from sparkmirror.java.folders import cache_folder
from tests.support.mirror import Mirror

_OF_THE_MACHINE = ("PATH", "PYTHONPATH", "JAVA_HOME", "LANG")
"""Variables that the image sets itself: programs, Java, sparkmirror itself."""


@dataclass(frozen=True)
class Container:
    """`mounts` are paths in the container, with what is there: a folder, a file, or texts by their names."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path | Mapping[str, str]] = field(default_factory=dict)


class ContainerProcess(Mirror):
    """One container. It is started once, with what its mounts hold then."""

    def __init__(self, folder: Path, container: Container, places: Mapping[str, str]) -> None:
        super().__init__(folder, {})
        self._container = container
        self._places = dict(places)

    def start(self) -> None:
        folder = self.log.parent
        texts = self._mount(folder / "mounts")
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._here(text), encoding="utf-8")
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {
            **{name: os.environ[name] for name in _OF_THE_MACHINE if name in os.environ},
            "HOME": str(temporary),
            "TMPDIR": str(temporary),
            "SPARKMIRROR_CACHE": str(cache_folder()),
            **{name: self._here(value) for name, value in self._container.environment.items()},
        }
        words = [self._here(word) for word in self._container.words]
        entry = [sys.executable, "-m", "sparkmirror.container.entry", *words]
        variables = [f"{name}={value}" for name, value in environment.items()]
        step = ["env", "-i", self._mark, *variables, *entry]
        self._process = start_process([step], self.log, outlives_us=False)

    def place(self, path: str) -> Path:
        """Return the path on this machine for one of the container."""
        return Path(self._here(path))

    def _mount(self, folder: Path) -> Mapping[Path, str]:
        """Add the places of all mounts, and return the texts of their files."""
        texts = {}
        for number, (path, content) in enumerate(self._container.mounts.items()):
            here = folder / str(number)
            self._places[path] = str(here)
            if isinstance(content, Mapping):
                texts.update({here / name: text for name, text in content.items()})
            elif content.is_file():
                texts[here] = content.read_text(encoding="utf-8")
            else:
                files = (file for file in content.rglob("*") if file.is_file())
                texts.update(
                    {here / file.relative_to(content): file.read_text(encoding="utf-8") for file in files}
                )
        return texts

    def _here(self, text: str) -> str:
        """Replace places, the longest first: one may be the beginning of another."""
        for place in sorted(self._places, key=len, reverse=True):
            text = text.replace(place, self._places[place])
        return text


@contextmanager
def running_container(
    folder: Path, container: Container, places: Mapping[str, str]
) -> Iterator[ContainerProcess]:
    """Start a container; it is killed at the end of the block if it still runs."""
    process = ContainerProcess(folder, container, places)
    try:
        process.start()
        yield process
    finally:
        process.close()
