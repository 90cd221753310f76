"""Finds the Java that runs brokers and Spark, or names the command that installs one."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from sparkmirror.domain.errors import NotInstalledError

OLDEST_VERSION = 17
MODULES: Final = (
    "java.desktop",
    "java.management",
    "java.naming",
    "java.sql",
    "jdk.incubator.vector",
    "jdk.security.auth",
    "jdk.unsupported",
)
"""The modules without which Spark's JVM ends at its start: a runtime made by jlink may lack some."""
_MODULES_LINE: Final = re.compile(r'^MODULES="(.*)"$', re.MULTILINE)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_VERSION_TIMEOUT_S = 60
_ADOPTIUM = "install Java 21 (Temurin) from Adoptium"
_INSTALL = {
    "alpine": "apk add openjdk21-jre-headless",
    "amzn": "sudo dnf install -y java-21-amazon-corretto-headless",
    "debian": "sudo apt-get install -y openjdk-21-jre-headless",
    "ubuntu": "sudo apt-get install -y openjdk-21-jre-headless",
    "fedora": "sudo dnf install -y java-21-openjdk-headless",
    "rhel": "sudo dnf install -y java-21-openjdk-headless",
}


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its launcher and its feature release (17, 21, …)."""

    executable: str
    version: int


@dataclass(frozen=True, slots=True)
class Host:
    """The operating system, as far as the choice of an install command depends on it."""

    system: str
    """The platform, as in `sys.platform`."""
    distribution: Mapping[str, str]
    """/etc/os-release, empty elsewhere than on Linux."""

    @classmethod
    def current(cls) -> "Host":
        try:
            return cls(sys.platform, platform.freedesktop_os_release())
        except OSError:
            return cls(sys.platform, {})


def find_java(environ: Mapping[str, str] = os.environ, host: Host | None = None) -> Java:
    """The first Java 17+ of JAVA_HOME and PATH.

    Raises NotInstalledError, whose one line holds the platform's install command.
    """
    found = []
    for executable in _candidates(environ):
        version = _version_of(executable)
        lacking = _missing_modules(executable)
        if isinstance(version, int) and version >= OLDEST_VERSION and not lacking:
            return Java(executable, version)
        what = f"is Java {version}" if isinstance(version, int) else version
        without = f" without the modules {', '.join(lacking)}" if lacking else ""
        found.append(f"{executable} {what}{without}")
    what = "; ".join(found) or "No Java was found in JAVA_HOME and PATH"
    raise NotInstalledError(
        f"{what}. sparkmirror needs Java {OLDEST_VERSION} or newer: {install_command(host or Host.current())}"
    )


def parse_version(text: str) -> int | None:
    """The feature release that `java -version` printed; 8 for `1.8.0_392`."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = match.groups()
    return int(second) if first == "1" and second else int(first)


def install_command(host: Host) -> str:
    """The command that installs Java on this host."""
    if host.system == "darwin":
        return "brew install --cask temurin@21"
    distribution = host.distribution
    if distribution.get("ID") == "debian" and distribution.get("VERSION_ID") in {"11", "12"}:
        return "sudo apt-get install -y openjdk-17-jre-headless"  # these releases have no 21
    families = [distribution.get("ID", ""), *distribution.get("ID_LIKE", "").split()]
    return next((_INSTALL[family] for family in families if family in _INSTALL), _ADOPTIUM)


def _candidates(environ: Mapping[str, str]) -> Iterator[str]:
    if java_home := environ.get("JAVA_HOME"):
        yield str(Path(java_home, "bin", "java"))
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield on_path


def _version_of(executable: str) -> int | str:
    """Return its version, or a description of its failure."""
    try:
        return _printed_version(executable, Path(executable).stat().st_mtime_ns)
    except OSError as error:
        return f"does not run ({error.strerror})"
    except subprocess.TimeoutExpired:
        return f"does not print its version within {_VERSION_TIMEOUT_S} s"


def _missing_modules(executable: str) -> list[str]:
    """Read the list of modules in the runtime's `release` file; one without a list has them all."""
    try:
        release = Path(executable).resolve().parents[1].joinpath("release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    listed = _MODULES_LINE.search(release)
    return [] if listed is None else [name for name in MODULES if name not in listed[1].split()]


@lru_cache
def _printed_version(executable: str, _written_at: int) -> int | str:
    """Start this Java, once in a process. Raises OSError, TimeoutExpired."""
    shown = subprocess.run(  # noqa: S603 - the user's own Java
        [executable, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
    )
    output = shown.stderr + shown.stdout
    return (
        parse_version(output)
        or f"does not run ({' '.join(output.split()) or f'exit code {shown.returncode}'})"
    )
