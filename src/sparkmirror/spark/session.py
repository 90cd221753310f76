"""The Spark session: started quietly and lean, ended for certain.

Spark's own words go to a log file; the JVM is ended by its process id when it doesn't end by itself.
"""

import contextlib
import logging
import os
import shlex
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pyspark
from py4j.protocol import Py4JError
from pyarrow import RecordBatch
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sparkmirror.clusters.class_archive import ClassArchive
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.spark.bare_session import bare_session
from sparkmirror.spark.executors import await_executors, executor_slots
from sparkmirror.spark.shipping import shipped

_log = logging.getLogger(__name__)

_JVM_EXIT_TIMEOUT_S = 2.0
"""With what the flows take at most to stop, ten seconds are not exceeded."""

_ARCHIVE_TIMEOUT_S = 120.0
"""How long a JVM may take to end when it writes its classes."""

_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_JVM_OPTIONS = "-Xms64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

_DEFAULTS = {
    "spark.app.name": "sparkmirror",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The status store is asked what runs. By default it would tell of tasks that start within 0.1 s of their
    # stage with the next heartbeat only, up to 20 s later, and they would seem to wait for a slot.
    "spark.ui.liveUpdate.period": "0",
    "spark.driver.memory": "512m",
    # An executor's JVM only starts tasks and passes pulses on; what is copied stays in Python.
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # Each connector has a pool: where slots are short, the one with the fewest running tasks is next.
    "spark.scheduler.mode": "FAIR",
    "spark.python.daemon.module": "sparkmirror.copy.worker_daemon",
    # A fork costs milliseconds; a used worker would bring threads and connections of its last task along.
    "spark.python.worker.reuse": "false",
    # A pulse must leave the Python worker at once, or the JVM would not notice that it should kill the task.
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    # A job hands a few numbers to Python. Java compiled for that would take half a second of each start.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Failures count over a job's whole life, which here is weeks; tasks back off by themselves.
    "spark.task.maxFailures": "1000000",
    "spark.task.reaper.enabled": "false",
}

_ON_A_CLUSTER = {
    # By default a driver that is cut off leaves its executors copying for 10 to 20 minutes.
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.heartbeat.maxFailures": "5",
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "1s",
}
_IN_ONE_JVM = {
    # A machine that slept goes on: the executor is not lost, though nothing was heard of it for a while.
    "spark.network.timeout": "30d",
}


def default_master(slots: int) -> str:
    """A local master. Its slots are threads that wait, so there can be many more than cores."""
    return f"local[{slots},1000000]"


class Session:
    """One SparkSession and the JVM behind it. `close` ends both, whatever state they are in."""

    def __init__(self, spark: SparkSession, jvm: "subprocess.Popen[bytes]", log: IO[bytes]) -> None:
        self.spark = spark
        self.log_file = Path(log.name)
        self.is_local = str(spark.sparkContext.master).startswith("local")
        self._jvm = jvm
        self._log = log

    @classmethod
    def start(cls, master: str, settings: Mapping[str, str], log_file: Path) -> "Session":
        """`settings` are the user's `spark.*` properties, which win over this module's defaults.

        Raises SparkmirrorError naming the log file when the JVM does not come up.
        """
        given = {"spark.master": master, **settings}
        patience = _ON_A_CLUSTER
        if given["spark.master"].startswith("local"):
            patience = _IN_ONE_JVM
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf(loadDefaults=False)
        jvm_options = " ".join([_JVM_OPTIONS, *map(shlex.quote, _classes().options)])
        own = {**_DEFAULTS, **patience, _DRIVER_OPTIONS: jvm_options}
        python, shipping = shipped(given)
        for key, value in {**own, **given, **shipping}.items():
            conf.set(key, value)
        log_file.parent.mkdir(parents=True, exist_ok=True)
        log = log_file.open("ab")
        try:
            session = cls._launch(conf, python, log)
        except Exception as error:
            log.close()
            reason = _told(error, given["spark.master"])
            raise SparkmirrorError(f"Spark did not start: {reason}; its log is {log_file}") from error
        if not session.is_local:
            await_executors(session.spark.sparkContext)
        return session

    @classmethod
    def _launch(cls, conf: SparkConf, python: str, log: IO[bytes]) -> "Session":
        launch: Any = launch_gateway
        gateway = launch(conf, popen_kwargs={"stdout": log, "stderr": log, "start_new_session": True})
        jvm: subprocess.Popen[bytes] = gateway.proc
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                context = SparkContext(gateway=gateway, conf=conf)
            context.pythonExec = python
            return cls(bare_session(context), jvm, log)
        except BaseException:
            _end_jvm(jvm)
            raise

    @property
    def is_alive(self) -> bool:
        """False once the JVM is gone; the Python driver outlives it and must treat that as a crashed node."""
        return self._jvm.poll() is None

    @property
    def slots(self) -> int:
        """How many tasks can run at the same time. On a cluster that changes: executors come and go.

        Raises SparkmirrorError when Spark doesn't answer any more.
        """
        context = self.spark.sparkContext
        try:
            return int(context.defaultParallelism) if self.is_local else executor_slots(context)
        except (Py4JError, OSError) as error:
            raise SparkmirrorError(f"Spark does not answer; its log is {self.log_file}") from error

    def warm_up(self) -> None:
        """Run a job as copy tasks are run: the first takes seconds more, for classes and for Python's daemon.

        Raises what Spark raises, also when the session is closed meanwhile.
        """
        self.spark.range(0, 2, 1, 2).mapInArrow(_unchanged, "id long").collect()

    def close(self, jvm_exit_timeout_s: float = _JVM_EXIT_TIMEOUT_S) -> None:
        with contextlib.suppress(Exception):  # a gateway that is already gone refuses everything
            self.spark.stop()
        with contextlib.suppress(Exception):
            gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001 - no public way to end the JVM
            gateway.shutdown()
        _end_jvm(self._jvm, jvm_exit_timeout_s)
        SparkContext._gateway = None  # noqa: SLF001 - or the next session of this process would talk to a dead JVM
        SparkContext._jvm = None  # noqa: SLF001
        self._log.close()


def archive_spark_classes(log_file: Path) -> None:
    """Make what lets Spark start sooner, unless it is there. Raises SparkmirrorError.

    A session runs one job as copy tasks are run, so that what a first job loads is in it too.
    """

    def run(option: str) -> None:
        session = Session.start(
            default_master(2), {_DRIVER_OPTIONS: f"{_JVM_OPTIONS} {shlex.quote(option)}"}, log_file
        )
        try:
            session.warm_up()
        finally:
            session.close(_ARCHIVE_TIMEOUT_S)

    _classes().make(run)


def _told(error: Exception, master: str) -> str:
    """An error of the JVM's can't say what it is once that has ended."""
    try:
        return str(error)
    except (Py4JError, OSError):
        return f"its JVM ended. Does {master} answer, and does it accept applications?"


def _classes() -> ClassArchive:
    home = Path(pyspark.__file__).parent
    return ClassArchive.of(f"pyspark-{pyspark.__version__}", home / "jars")


def _unchanged(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    yield from batches


def _end_jvm(jvm: "subprocess.Popen[bytes]", timeout_s: float = _JVM_EXIT_TIMEOUT_S) -> None:
    if jvm.stdin is not None:
        with contextlib.suppress(OSError):
            jvm.stdin.close()
    try:
        jvm.wait(timeout_s)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def log_directory() -> Path:
    """Where logs go when the user names no file."""
    return Path(tempfile.gettempdir()) / "sparkmirror"
