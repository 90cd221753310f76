"""Runs Ivy, the dependency resolver inside PySpark's jars, as a program, without importing PySpark."""

import importlib.util
import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from sparkmirror.domain.errors import JarsError, NotInstalledError
from sparkmirror.domain.extras import how_to_install
from sparkmirror.java.find_java import Java

# Without these the JVM waits for a silent server for ever.
_TIMEOUTS = ("-Dsun.net.client.defaultConnectTimeout=15000", "-Dsun.net.client.defaultReadTimeout=60000")
_CAUSES = ("server access error", "host ", "download failed", "exception", ": not found", "error")


@dataclass(frozen=True, slots=True)
class Module:
    """A Maven artifact, `organisation:name:revision`."""

    organisation: str
    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class Ivy:
    """Ivy's Java and jar. `settings` is an ivysettings.xml that names repositories other than Maven's."""

    java: str
    jar: Path
    settings: str | None = None

    @classmethod
    def of_pyspark(cls, java: Java, environ: Mapping[str, str] = os.environ) -> "Ivy":
        """The Ivy that PySpark brings, with the settings file that SPARKMIRROR_IVY_SETTINGS names, if any."""
        spec = importlib.util.find_spec("pyspark")
        if spec is None or not spec.origin:
            raise NotInstalledError(f"Kafka's jars are fetched by PySpark's Ivy: {how_to_install('spark')}")
        home = Path(spec.origin).parent
        jar = next(home.glob("jars/ivy-*.jar"), None)
        if jar is None:
            raise JarsError(f"PySpark's Ivy is missing: no ivy-*.jar in {home / 'jars'}. Reinstall pyspark.")
        return cls(java.executable, jar, environ.get("SPARKMIRROR_IVY_SETTINGS"))

    def retrieve(
        self,
        modules: Sequence[Module],
        work: Path,
        *,
        keep_open: int,
        on_line: Callable[[str], None],
    ) -> Path:
        """Fetch modules and dependencies; returns the folder of jars inside `work`.

        `work/ivy` keeps what was fetched, so that a second try continues there. `keep_open` is
        a file descriptor that Ivy inherits: a lock on it holds as long as Ivy writes, even if we are killed.
        """
        request = work / "ivy.xml"
        request.write_text(_module_descriptor(modules), encoding="utf-8")
        command = [self.java, *_TIMEOUTS, "-jar", str(self.jar), "-cache", str(work / "ivy")]
        if self.settings:
            command += ["-settings", self.settings]
        jars = work / "jars"
        pattern = f"{jars}/[artifact]-[revision](-[classifier]).[ext]"
        command += ["-confs", "default", "-ivy", str(request), "-retrieve", pattern]
        _run(command, keep_open, on_line)
        return jars


def _module_descriptor(modules: Sequence[Module]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)}"
        f' rev={quoteattr(module.revision)} conf="default->default"/>'
        for module in modules
    )
    return (
        '<ivy-module version="2.0"><info organisation="sparkmirror" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies>'
        "</ivy-module>"
    )


def _run(command: Sequence[str], keep_open: int, on_line: Callable[[str], None]) -> None:
    recent: deque[str] = deque(maxlen=400)
    with subprocess.Popen(  # noqa: S603 - Java and arguments of our own
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(keep_open,),
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                recent.append(line.strip())
                on_line(line.strip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise JarsError(_reason(recent, process.returncode))


def _reason(lines: Sequence[str], code: int) -> str:
    """Ivy's line with the cause: errors of the network come before artifacts that could not be resolved."""
    causes = (line.strip(":\t ") for mark in _CAUSES for line in lines if mark in line.lower())
    what = next(causes, f"Ivy ended with exit code {code}")
    return (
        f"Kafka's jars could not be fetched from Maven Central: {what}. Check the network, or name the "
        "ivysettings.xml of your own repository in SPARKMIRROR_IVY_SETTINGS, then try again."
    )
