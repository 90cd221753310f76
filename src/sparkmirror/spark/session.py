"""Starts and ends the Spark session of a mirror, in a JVM of its own or on the Spark of a user."""

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import pyspark
from py4j.protocol import Py4JError
from pyarrow import RecordBatch
from pyspark import SparkConf
from pyspark.sql import SparkSession

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.java.class_archive import ClassArchive
from sparkmirror.metrics.readings import JvmReading
from sparkmirror.spark.classic_host import ClassicHost
from sparkmirror.spark.connect_host import ConnectHost
from sparkmirror.spark.driver_jvm import (
    JVM_EXIT_TIMEOUT_S,
    OwnJvm,
    host_gateway,
    host_settings,
    new_context,
)
from sparkmirror.spark.executors import await_executors
from sparkmirror.spark.jvm_samples import sample_of
from sparkmirror.spark.log_files import reason_in_log
from sparkmirror.spark.private_members import has_context, is_stopped, jvm_of
from sparkmirror.spark.shipping import shipped
from sparkmirror.spark.slots import Settings, allocated_slots, is_local

_ARCHIVE_TIMEOUT_S = 120.0
"""The longest time that a JVM may take to end when it writes its classes."""

_GATEWAY_EXITED: Final = "JAVA_GATEWAY_EXITED"
"""PySpark's condition for a JVM that ended before it could be asked anything."""

_SUBMITTED_FILE: Final = "submit.py"
_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_DRIVER_CLASS_PATH = "spark.driver.extraClassPath"
_JVM_OPTIONS = "-Xms64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

_SESSION_DEFAULTS: Final = {
    # A pulse must leave the Python worker at once, or the JVM would not notice that it should kill the task.
    "spark.sql.execution.pandas.udf.buffer.size": "64",
    # A job hands a few numbers to Python. Java compiled for that would take half a second of each start.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings of a session, which apply in a host's context too."""

_DEFAULTS: Final = {
    **_SESSION_DEFAULTS,
    "spark.app.name": "sparkmirror",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # The status store is asked what runs. By default it would show tasks that start within 0.1 s of their
    # stage with the next heartbeat only, up to 20 s later, and they would seem to wait for a slot.
    "spark.ui.liveUpdate.period": "0",
    "spark.driver.memory": "512m",
    # An executor's JVM only starts tasks and passes pulses on; what is copied stays in Python.
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # Spark's own expression overlooks some that connectors and stores use.
    "spark.redaction.regex": "(?i)secret|passw|passphrase|token|credential|access[.]?key|private[.]?key|jaas",
    # Each connector has a pool: where slots are short, the one with the fewest running tasks is next.
    "spark.scheduler.mode": "FAIR",
    "spark.python.daemon.module": "sparkmirror.copy.task.worker_daemon",
    # A fork costs milliseconds; a used worker would bring threads and connections of its last task along.
    "spark.python.worker.reuse": "false",
    # Failures count over a job's whole life, which here is weeks; tasks back off by themselves.
    "spark.task.maxFailures": "1000000",
    "spark.task.reaper.enabled": "false",
}

_CLUSTER_TIMEOUTS: Final = {
    # By default a driver that is cut off leaves its executors copying for 10 to 20 minutes.
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.heartbeat.maxFailures": "5",
    "spark.network.timeout": "10s",
    "spark.network.timeoutInterval": "1s",
}
_LOCAL_TIMEOUTS: Final = {
    # A machine that slept continues: the executor is not lost, though it sent no heartbeat for a while.
    "spark.network.timeout": "30d",
}


def default_master(slots: int) -> str:
    """A local master, whose slots are threads that wait, so there can be many more than cores."""
    return f"local[{slots},1000000]"


class Ending(Protocol):
    """Tells what ends with a session."""

    log_file: Path | None
    """Spark's log; None where the host decides about it."""

    @property
    def is_alive(self) -> bool: ...

    def close(self, spark: Any, exit_timeout_s: float) -> None:
        """End what was started for this session, and nothing else. Raises nothing."""


class Session:
    """A Spark session. `close` ends what was begun for it, in any state.

    `start` has a JVM of its own, or that of `spark-submit` with a context that takes its settings. `beside`
    has a session of its own beside a user's, and leaves theirs as it is.
    """

    def __init__(self, host: ClassicHost | ConnectHost, ending: Ending) -> None:
        self.host = host
        self.ending = ending
        self.page: str | None = None
        """The mirror's page, for descriptions of jobs."""

    @classmethod
    def start(cls, master: str, settings: Mapping[str, str], log_file: Path) -> "Session":
        """`settings` are the user's `spark.*` properties, which win over `master` and this module's defaults.

        Raises SparkmirrorError naming the log file when the JVM does not come up.
        """
        if has_context():
            raise SparkmirrorError(
                "this process has a Spark session already, and Spark allows one: "
                "Mirror(config, spark=spark) runs in it"
            )
        gateway = host_gateway()
        given = {"spark.master": master, **(_submitted(gateway) if gateway else {}), **settings}
        if given["spark.master"].startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        try:
            session = _in_the_hosts_jvm(gateway, given) if gateway else _in_a_jvm_of_its_own(given, log_file)
        except Exception as error:
            said, log = ("", "") if gateway else (reason_in_log(log_file), f"; its log is {log_file}")
            reason = _reason(error, given["spark.master"], said)
            raise SparkmirrorError(f"Spark did not start: {reason}{log}") from error
        if not session.is_local and allocated_slots(session.host.setting) is None:
            await_executors(session.spark.sparkContext)
        return session

    @classmethod
    def beside(cls, spark: Any, slots: int | None = None) -> "Session":
        """Make a session on the Spark of `spark`, a SparkSession, classic or of Spark Connect.

        `slots` limits tasks where the settings of a Connect server don't. Raises SparkmirrorError.
        """
        is_classic = hasattr(spark, "sparkContext")
        if is_stopped(spark.sparkContext) if is_classic else spark.is_stopped:
            raise SparkmirrorError("this Spark session has ended: pass another one, or none")
        host = ClassicHost(spark.newSession(), is_shared=True) if is_classic else ConnectHost(spark, slots)
        for key, value in _SESSION_DEFAULTS.items():
            host.spark.conf.set(key, value)
        return cls(host, _Guest(host))

    @property
    def spark(self) -> SparkSession:
        """The SparkSession, of this session's own."""
        spark: SparkSession = self.host.spark
        return spark

    @property
    def is_local(self) -> bool:
        return is_local(self.master)

    @property
    def master(self) -> str:
        return self.host.setting("spark.master") or ""

    @property
    def is_alive(self) -> bool:
        """False once the JVM, a host's context or a server's session is gone, which Python outlives."""
        return self.ending.is_alive

    @property
    def end_reason(self) -> str:
        """Say what has ended, as a sentence: Python outlives its Spark."""
        if isinstance(self.ending, _Guest):
            return "the Spark session that this mirror ran in has ended (spark.stop(), or its driver is gone)"
        return f"Spark's JVM ended unexpectedly; {self.log_hint}"

    @property
    def log_hint(self) -> str:
        """Say where Spark's own log is, as part of a sentence."""
        log_file = self.ending.log_file
        return (
            "its log is where this process's Spark writes it"
            if log_file is None
            else f"its log is {log_file}"
        )

    @property
    def slots(self) -> int:
        """Return how many tasks can run at the same time. On a cluster that changes: executors come and go.

        Raises SparkmirrorError when Spark doesn't respond any more.
        """
        return self.host.slots()

    def require_private(self, connections: Iterable[ConnectionSettings]) -> None:
        """Raise ConfigError when tasks would bring secrets over connections that Spark does not protect."""
        if not any(each.holds_secrets for each in connections):
            return
        if isinstance(self.host, ConnectHost) and not self.host.is_private:
            raise ConfigError(
                "spark.remote",
                None,
                "must have use_ssl=true or a token, since tasks bring passwords of Kafka's clients to the "
                "server; see docs/security.md",
            )
        missing = None if self.is_local else unprotected(self.host.setting)
        if missing is not None:
            raise ConfigError(
                missing,
                None,
                "must be true, since tasks bring passwords of Kafka's clients to the executors of "
                f"{self.master}; see docs/security.md",
            )

    def jvm_reading(self) -> JvmReading | None:
        """Sample the driver's JVM, where it is this process's. Raises Py4JError."""
        jvm = jvm_of(self.host.context) if isinstance(self.host, ClassicHost) else None
        return None if jvm is None else sample_of(jvm)

    def warm_up(self) -> None:
        """Run a job as copy tasks are run: the first takes seconds more, for classes and for Python's daemon.

        Raises what Spark raises, also when the session is closed meanwhile.
        """
        self.spark.range(0, 2, 1, 2).mapInArrow(_unchanged, "id long").collect()

    def close(self, jvm_exit_timeout_s: float = JVM_EXIT_TIMEOUT_S) -> None:
        self.ending.close(self.spark, jvm_exit_timeout_s)


class _HostJvm:
    """The JVM of `spark-submit` with a SparkContext of ours, which ends with the session; the JVM stays."""

    log_file: Path | None = None

    def __init__(self, host: ClassicHost) -> None:
        self._host = host

    @property
    def is_alive(self) -> bool:
        return self._host.alive()

    def close(self, spark: Any, exit_timeout_s: float) -> None:  # noqa: ARG002 - the JVM does not exit
        with contextlib.suppress(Exception):
            spark.stop()


class _Guest:
    """A user's Spark, which stays: only the session's own jobs end."""

    log_file: Path | None = None

    def __init__(self, host: ClassicHost | ConnectHost) -> None:
        self._host = host

    @property
    def is_alive(self) -> bool:
        return self._host.alive()

    def close(self, spark: Any, exit_timeout_s: float) -> None:  # noqa: ARG002 - likewise
        if self.is_alive:
            with contextlib.suppress(Exception):
                spark.interruptAll()
        if isinstance(self._host, ConnectHost):
            self._host.close()


def unprotected(settings: Settings) -> str | None:
    """The setting that is missing for executors to be known, and connections to them encrypted."""

    def is_on(key: str) -> bool:
        return (settings(key) or "").strip().lower() == "true"

    if not is_on("spark.authenticate"):
        return "spark.authenticate"
    encrypted = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    return None if any(map(is_on, encrypted)) else encrypted[0]


def _submitted(gateway: Any) -> dict[str, str]:
    """Return what `spark-submit` was given. Unless that names the application, it is called by its file."""
    given = host_settings(gateway)
    if given.get("spark.app.name") == _SUBMITTED_FILE:
        del given["spark.app.name"]
    return {"spark.ui.enabled": "true", **given}


def _in_the_hosts_jvm(gateway: object, given: Mapping[str, str]) -> Session:
    conf, python = _conf(given, {})
    host = ClassicHost(new_context(gateway, conf, python))
    return Session(host, _HostJvm(host))


def _in_a_jvm_of_its_own(given: Mapping[str, str], log_file: Path) -> Session:
    options = " ".join([_JVM_OPTIONS, *map(shlex.quote, _classes().options)])
    conf, python = _conf(given, {_DRIVER_OPTIONS: options, _DRIVER_CLASS_PATH: spark_class_path()})
    jvm = OwnJvm(conf, log_file)
    try:
        return Session(ClassicHost(new_context(jvm.gateway, conf, python)), jvm)
    except BaseException:
        jvm.end()
        raise


def _conf(given: Mapping[str, str], of_the_jvm: Mapping[str, str]) -> tuple[SparkConf, str]:
    """The settings of a context, and the command that executors run as Python."""
    timeouts = _LOCAL_TIMEOUTS if is_local(given["spark.master"]) else _CLUSTER_TIMEOUTS
    conf = SparkConf(loadDefaults=False)
    python, shipping = shipped(given)
    for key, value in {**_DEFAULTS, **timeouts, **of_the_jvm, **given, **shipping}.items():
        conf.set(key, value)
    return conf, python


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


def _reason(error: Exception, master: str, said: str) -> str:
    """Say why, by what the JVM `said` in its log if it has ended: its error can't be shown then."""
    try:
        shown = str(error)
    except (Py4JError, OSError):
        shown = f"its JVM ended. Does {master} respond, and does it accept applications?"
    else:
        if _GATEWAY_EXITED not in shown:
            return shown
    return f"its JVM ended: {said}" if said else shown


def _classes() -> ClassArchive:
    return ClassArchive.of(f"spark-{pyspark.__version__}", _jars())


def _jars() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


def spark_class_path() -> str:
    """Spark's jars in an order of their own.

    Spark names `jars/*`, which Java puts into the order of the file system. That of another machine, on which
    an image runs, is another one, and the archive of classes only fits the order in which it was made.
    """
    return os.pathsep.join(map(str, sorted(_jars().glob("*.jar"))))


def _unchanged(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    yield from batches
