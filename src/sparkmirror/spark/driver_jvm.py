"""Starts a JVM for the Spark driver, or uses the one that `spark-submit` brings.

PySpark has at most one JVM and one SparkContext in a process.
"""

import contextlib
import os
import pwd
import shlex
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final

import javaproperties
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sparkmirror.spark.private_members import forget_gateway, gateway_of, running_gateway, scala_context

JVM_EXIT_TIMEOUT_S: Final = 2.0
"""Together with the longest stop of the flows, this stays within ten seconds."""

_SUBMIT_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_launch: Any = launch_gateway


@contextlib.contextmanager
def _submitted(conf: SparkConf) -> Iterator[None]:
    """Let a JVM that is started meanwhile read these settings from a file that only this user can read.

    PySpark puts settings on the command line, which every user of the machine can read, secrets included.
    """
    arguments = os.environ.get(_SUBMIT_ARGUMENTS)
    with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as file:
        file.write(javaproperties.dumps(conf.getAll(), timestamp=False))
        file.flush()
        given = f"--properties-file {shlex.quote(file.name)} --load-spark-defaults"
        os.environ[_SUBMIT_ARGUMENTS] = f"{given} {arguments or 'pyspark-shell'}"
        try:
            yield
        finally:
            if arguments is None:
                del os.environ[_SUBMIT_ARGUMENTS]
            else:
                os.environ[_SUBMIT_ARGUMENTS] = arguments


def name_user(environ: MutableMapping[str, str], uid: int) -> None:
    """Let Spark take the number as the user's name where the system has no name, as in a container.

    Hadoop's login would end the JVM.
    """
    try:
        pwd.getpwuid(uid)
    except KeyError:
        environ.setdefault("SPARK_USER", str(uid))


class OwnJvm:
    """A JVM for one session. It is ended by its process id when it doesn't end by itself."""

    def __init__(self, conf: SparkConf, log_file: Path) -> None:
        """Raises what PySpark raises when the JVM does not come up."""
        self.log_file: Path | None = log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        name_user(os.environ, os.getuid())
        with log_file.open("ab") as log, _submitted(conf):
            self.gateway = _launch(popen_kwargs={"stdout": log, "stderr": log, "start_new_session": True})
        self.process: subprocess.Popen[bytes] = self.gateway.proc

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self, spark: SparkSession, exit_timeout_s: float) -> None:
        with contextlib.suppress(Exception):  # a gateway that is already gone refuses everything
            spark.stop()
        with contextlib.suppress(Exception):
            self.gateway.shutdown()
        self.end(exit_timeout_s)
        forget_gateway()

    def end(self, exit_timeout_s: float = JVM_EXIT_TIMEOUT_S) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(exit_timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def host_gateway() -> Any:
    """The gateway to the JVM that this process has, or that `spark-submit` started for it; else None."""
    gateway = running_gateway()
    if gateway is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        return _launch()  # which connects to that one
    return gateway


def host_settings(gateway: Any) -> dict[str, str]:
    """Return what `spark-submit` was given, as `spark.*` settings."""
    return dict(SparkConf(_jvm=gateway.jvm).getAll())


def new_context(gateway: Any, conf: SparkConf, python: str) -> SparkSession:
    """A context and a session in the gateway's JVM; executors run `python`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = SparkContext(gateway=gateway, conf=conf)
    context.pythonExec = python
    return bare_session(context, context.getConf())


_EXTENSIONS: Final = "spark.sql.extensions"
"""Spark's setting. Extensions that it names need the usual class loader."""
_SESSION: Final = "org.apache.spark.sql.classic.SparkSession"


def bare_session(context: SparkContext, conf: SparkConf) -> SparkSession:
    """Make a session without the extensions that lie on Spark's class path, unless `conf` names some.

    MLlib brings one, for SQL functions that no mirror calls. If it is left out, the first copy job runs 0.7 s
    earlier (5.4 instead of 6.1 s after start), and the driver takes 1.0 s less CPU and 41 MB less memory.
    That pays for the reflection into PySpark's private members, since Spark has no setting against
    extensions. It finds them with the context class loader of the calling thread, as Java's ServiceLoader
    does.
    """
    if conf.contains(_EXTENSIONS):
        return SparkSession(context)
    gateway, of_scala = gateway_of(context), scala_context(context)
    jvm = gateway.jvm
    options = jvm.java.util.HashMap()
    # Found before the loader is changed: by that one Py4J would not find them.
    thread = jvm.java.lang.Thread.currentThread()
    usual = thread.getContextClassLoader()
    types = _array(gateway, jvm.java.lang.Class, of_scala.getClass(), options.getClass())
    constructor = usual.loadClass(_SESSION).getConstructor(types)
    arguments = _array(gateway, jvm.java.lang.Object, of_scala, options)
    thread.setContextClassLoader(jvm.java.lang.ClassLoader.getPlatformClassLoader())
    try:
        session = constructor.newInstance(arguments)
    finally:
        thread.setContextClassLoader(usual)
    return SparkSession(context, session)


def _array(gateway: Any, of: Any, *values: Any) -> Any:
    """Make a Java array, as Java's reflection takes types and arguments."""
    array = gateway.new_array(of, len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array
