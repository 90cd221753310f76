"""Prints the part of requirements.lock that a user installs, without the tools of the tests.

`python -m release.runtime_requirements [extra…]`, where the lock is installed; `make package` and
`make audit` take it. The extras are `spark` and `aws` by default.
"""

import re
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK: Final = Path(__file__).parents[1] / "requirements.lock"


def needed(package: str, extras: Iterable[str]) -> set[str]:
    """The names of everything that the package needs on this machine, itself left out."""
    begin = (package, frozenset(extras))
    found, open_ends = {begin}, [begin]
    while open_ends:
        for requirement in _direct(*open_ends.pop()):
            other = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if other not in found:
                found.add(other)
                open_ends.append(other)
    return {name for name, _ in found} - {package}


def locked(names: set[str]) -> str:
    """The entries of the lock with these names, hashes included."""
    entries = re.split(r"\n(?=\S)", LOCK.read_text(encoding="utf-8"))
    return "".join(f"{entry}\n" for entry in entries if _name_of(entry) in names)


def _direct(package: str, extras: frozenset[str]) -> Iterable[Requirement]:
    try:
        texts = requires(package) or []
    except PackageNotFoundError:  # of another system or version of Python
        texts = []
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def _name_of(entry: str) -> str:
    return canonicalize_name(re.split("[=; ]", entry.lstrip(), maxsplit=1)[0])


if __name__ == "__main__":
    sys.stdout.write(locked(needed("sparkmirror", sys.argv[1:] or ["spark", "aws"])))
