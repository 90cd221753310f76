"""Why a JVM ended, by its log."""

from pathlib import Path

import pytest

from sparkmirror.spark.log_files import reason_in_log

USUAL = """\
WARNING: Using incubator modules: jdk.incubator.vector
26/11/27 14:28:41 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
"""
NO_MODULE = """\
Error occurred during initialization of boot layer
java.lang.module.FindException: Module jdk.incubator.vector not found
"""
NO_MEMORY = """\
Error occurred during initialization of VM
Could not reserve enough space for 1073741824KB object heap
"""
NO_SUCH_OPTION = """\
Invalid initial heap size: -Xms1x
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
NO_USER = """\
Exception in thread "main" java.lang.ExceptionInInitializerError
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
Caused by: javax.security.auth.login.LoginException: invalid null input: name
\tat jdk.security.auth/com.sun.security.auth.UnixPrincipal.<init>(UnixPrincipal.java:71)
\t... 12 more
"""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (NO_MODULE, "java.lang.module.FindException: Module jdk.incubator.vector not found"),
        (NO_MEMORY, "Could not reserve enough space for 1073741824KB object heap"),
        (NO_SUCH_OPTION, "Invalid initial heap size: -Xms1x"),
        (USUAL + NO_USER, "javax.security.auth.login.LoginException: invalid null input: name"),
        (USUAL, USUAL.splitlines()[-1]),
        ("", ""),
    ],
)
def test_the_line_with_the_reason_is_found(log: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    file.write_text(log)
    assert reason_in_log(file) == reason


def test_a_log_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert reason_in_log(tmp_path / "spark.log") == ""


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    file.write_text("java.io.IOException: long ago\n" + "all is well\n" * 20_000 + "x" * 1000)
    assert reason_in_log(file) == "x" * 300
