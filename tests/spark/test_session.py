"""The Spark session. The fixture `session` checks that its end leaves no process."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyspark

from sparkmirror.copy.task.outcomes import SCHEMA as OUTCOMES
from sparkmirror.copy.task.outcomes import EndReason, Outcome
from sparkmirror.spark.driver_jvm import bare_session
from sparkmirror.spark.session import Session
from tests.spark.running_job import PASSWORD, own_jvm


def test_session_has_the_requested_slots(session: Session) -> None:
    assert session.slots == 8
    assert session.is_alive


def test_users_settings_override_the_defaults(session: Session) -> None:
    config = dict(session.spark.sparkContext.getConf().getAll())
    assert config["spark.ui.enabled"] == "false"
    assert config["spark.task.maxFailures"] == "1000000"


def test_no_setting_is_on_a_command_line_or_in_a_file_that_stays(session: Session) -> None:
    assert session.spark.sparkContext.getConf().get("spark.example.password") == PASSWORD
    jvm: Any = session.spark.sparkContext._jvm
    assert jvm.java.lang.System.getProperty("spark.example.password") == PASSWORD, (
        "the JVM was started with it"
    )
    process = psutil.Process(own_jvm(session).process.pid)
    command = process.cmdline()
    assert PASSWORD not in " ".join(command)
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ
    assert not Path(command[command.index("--properties-file") + 1]).exists()


def test_secrets_are_redacted_in_what_spark_records(session: Session) -> None:
    jvm: Any = session.spark.sparkContext._jvm
    expression = session.spark.sparkContext.getConf().get("spark.redaction.regex")
    keys = jvm.java.util.regex.Pattern.compile(expression)
    for key in ("spark.a.password", "spark.a.passphrase", "spark.a.credentials", "spark.sasl.jaas.config"):
        assert keys.matcher(key).find(), key


def test_python_workers_are_ready_after_the_first_job(session: Session) -> None:
    session.warm_up()
    started = [
        process.info["cmdline"] or []
        for process in psutil.process_iter(["ppid", "cmdline"])
        if process.info["ppid"] == own_jvm(session).process.pid
    ]
    assert any("sparkmirror.copy.task.worker_daemon" in command for command in started)


def test_task_imports_pyspark_from_its_zip_and_no_pandas(session: Session) -> None:
    def import_and_report(_batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield Outcome.empty_batch()
        yield Outcome(7, EndReason.STOPPED).to_batch()
        has_pandas = "pandas" in sys.modules
        is_from_zip = not Path(pyspark.__file__).is_file()
        yield Outcome(has_pandas, EndReason.STOPPED).to_batch()
        yield Outcome(is_from_zip, EndReason.STOPPED).to_batch()

    rows = session.spark.range(0, 1, 1, 1).mapInArrow(import_and_report, OUTCOMES).collect()
    assert [row["task"] for row in rows] == [7, False, False]
    assert {row["reason"] for row in rows} == {"stopped"}


def test_no_unconfigured_extension_is_loaded(session: Session) -> None:
    jvm: Any = session.spark.sparkContext._jvm
    registry = getattr(jvm.org.apache.spark.sql.catalyst.analysis, "FunctionRegistry$")
    registered = getattr(registry, "MODULE$").internal().listFunction()
    names = {each.funcName() for each in jvm.scala.jdk.javaapi.CollectionConverters.asJava(registered)}
    assert "product" in names
    assert "vector_to_array" not in names, "MLlib's"


def test_configured_extensions_are_loaded(session: Session) -> None:
    context = session.spark.sparkContext
    session.spark.range(1).createOrReplaceTempView("of_this_session")
    assert not bare_session(context, context.getConf()).catalog.tableExists("of_this_session")
    named = context.getConf().set("spark.sql.extensions", "org.example.Extensions")
    ordinary = bare_session(context, named)
    assert ordinary.catalog.tableExists("of_this_session"), "PySpark finds the session there is"
    ordinary.catalog.dropTempView("of_this_session")


def test_jvm_that_fails_to_start_is_reported_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    options = {"spark.driver.extraJavaOptions": "-Xms1x"}
    start = f"Session.start(default_master(1), {options}, Path({str(log)!r}))"
    program = f"from pathlib import Path; from sparkmirror.spark.session import *; {start}"
    # In another process, because a second session in this one would share its JVM.
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert re.search(
        f"SparkmirrorError: Spark did not start: its JVM ended: .*-Xms1x; its log is {log}", ended.stderr
    ), ended.stderr
    assert "-Xms1x" in log.read_text()
