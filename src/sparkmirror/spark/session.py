"""Starts and ends the Spark session of a mirror, in a JVM of its own or in the Spark of a host."""

import logging
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError
from pyarrow import RecordBatch
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.java.class_archive import ClassArchive
from sparkmirror.spark.driver_jvm import (
    JVM_EXIT_TIMEOUT_S,
    DriverJvm,
    HostContext,
    HostJvm,
    OwnJvm,
    host_context,
    host_gateway,
    host_settings,
    new_context,
)
from sparkmirror.spark.executors import await_executors, executor_slots
from sparkmirror.spark.log_files import reason_in_log
from sparkmirror.spark.shipping import shipped, zipped_module

_log = logging.getLogger(__name__)

_ARCHIVE_TIMEOUT_S = 120.0
"""The longest time that a JVM may take to end when it writes its classes."""

_GATEWAY_EXITED: Final = "JAVA_GATEWAY_EXITED"
"""PySpark's condition for a JVM that ended before it could be asked anything."""

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
    """A local master. Its slots are threads that wait, so there can be many more than cores."""
    return f"local[{slots},1000000]"


class Session:
    """One SparkSession and the JVM behind it. `close` ends what `start` began, whatever state it is in.

    Where the process already has a SparkContext, the session is another one of that context: it has SQL
    settings of its own and leaves a slot to the host. Where it only has a JVM, as under `spark-submit`, the
    session brings a context, which takes what `spark-submit` was given.
    """

    def __init__(self, spark: SparkSession, jvm: DriverJvm) -> None:
        self.spark = spark
        self.jvm = jvm
        self.is_local = str(spark.sparkContext.master).startswith("local")
        self._shipped = {"sparkmirror"}
        """The packages that executors have."""

    @classmethod
    def start(cls, master: str, settings: Mapping[str, str], log_file: Path) -> "Session":
        """`settings` are the user's `spark.*` properties, which win over `master` and this module's defaults.

        Raises SparkmirrorError naming the log file when the JVM does not come up.
        """
        context = host_context()
        if context is not None:
            return cls(_beside_the_hosts(context, settings), HostContext(context))
        gateway = host_gateway()
        given = {"spark.master": master, **(host_settings(gateway) if gateway else {}), **settings}
        if given["spark.master"].startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        try:
            session = _in_the_hosts_jvm(gateway, given) if gateway else _in_a_jvm_of_its_own(given, log_file)
        except Exception as error:
            said, log = ("", "") if gateway else (reason_in_log(log_file), f"; its log is {log_file}")
            reason = _reason(error, given["spark.master"], said)
            raise SparkmirrorError(f"Spark did not start: {reason}{log}") from error
        if not session.is_local:
            await_executors(session.spark.sparkContext)
        return session

    @property
    def is_alive(self) -> bool:
        """False once the JVM or a host's context is gone, which Python outlives: that is a crashed node."""
        return self.jvm.is_alive

    @property
    def log_hint(self) -> str:
        """Say where Spark's own log is, as part of a sentence."""
        log_file = self.jvm.log_file
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
        context = self.spark.sparkContext
        try:
            slots = int(context.defaultParallelism) if self.is_local else executor_slots(context)
        except (Py4JError, OSError) as error:
            raise SparkmirrorError(f"Spark does not respond; {self.log_hint}") from error
        # Copy tasks never end: with all slots taken, no job of the host would ever run.
        return max(1, slots - 1) if isinstance(self.jvm, HostContext) else slots

    def require_private(self, connections: Iterable[ConnectionSettings]) -> None:
        """Raise ConfigError when tasks would bring secrets over connections that Spark does not protect."""
        if self.is_local or not any(each.holds_secrets for each in connections):
            return
        settings = self.spark.sparkContext.getConf()
        missing = unprotected(dict(settings.getAll()))
        if missing is not None:
            raise ConfigError(
                missing,
                None,
                "must be true, since tasks bring passwords of Kafka's clients to the executors of "
                f"{self.spark.sparkContext.master}; see docs/security.md",
            )

    def ship(self, modules: Iterable[str]) -> None:
        """Let jobs from now on import these modules on executors. On this machine they can as it is.

        Raises what Spark raises.
        """
        for module in sorted({name.partition(".")[0] for name in modules} - self._shipped):
            self._shipped.add(module)
            if not self.is_local:
                self.spark.sparkContext.addPyFile(str(zipped_module(module)))

    def warm_up(self) -> None:
        """Run a job as copy tasks are run: the first takes seconds more, for classes and for Python's daemon.

        Raises what Spark raises, also when the session is closed meanwhile.
        """
        self.spark.range(0, 2, 1, 2).mapInArrow(_unchanged, "id long").collect()

    def close(self, jvm_exit_timeout_s: float = JVM_EXIT_TIMEOUT_S) -> None:
        self.jvm.close(self.spark, jvm_exit_timeout_s)


def unprotected(settings: Mapping[str, str]) -> str | None:
    """The setting that is missing for executors to be known, and connections to them encrypted."""

    def is_on(key: str) -> bool:
        return settings.get(key, "false").strip().lower() == "true"

    if not is_on("spark.authenticate"):
        return "spark.authenticate"
    encrypted = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    return None if any(map(is_on, encrypted)) else encrypted[0]


def _beside_the_hosts(context: SparkContext, settings: Mapping[str, str]) -> SparkSession:
    """A session of the host's context. What only a context can be given stays as the host has it."""
    spark = SparkSession.builder.getOrCreate().newSession()
    fixed = []
    for key, value in {**_SESSION_DEFAULTS, **settings}.items():
        if key in _SESSION_DEFAULTS or spark.conf.isModifiable(key):
            spark.conf.set(key, value)
        elif context.getConf().get(key) != value:
            fixed.append(key)
    if fixed:
        _log.warning("the Spark session of this process keeps its own settings of %s", ", ".join(fixed))
    return spark


def _in_the_hosts_jvm(gateway: object, given: Mapping[str, str]) -> Session:
    conf, python = _conf(given, {})
    context, spark = new_context(gateway, conf, python)
    return Session(spark, HostJvm(context))


def _in_a_jvm_of_its_own(given: Mapping[str, str], log_file: Path) -> Session:
    options = " ".join([_JVM_OPTIONS, *map(shlex.quote, _classes().options)])
    conf, python = _conf(given, {_DRIVER_OPTIONS: options, _DRIVER_CLASS_PATH: spark_class_path()})
    jvm = OwnJvm(conf, log_file)
    try:
        _, spark = new_context(jvm.gateway, conf, python)
        return Session(spark, jvm)
    except BaseException:
        jvm.end()
        raise


def _conf(given: Mapping[str, str], of_the_jvm: Mapping[str, str]) -> tuple[SparkConf, str]:
    """The settings of a context, and the command that executors run as Python."""
    timeouts = _LOCAL_TIMEOUTS if given["spark.master"].startswith("local") else _CLUSTER_TIMEOUTS
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
