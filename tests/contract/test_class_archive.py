"""Class data sharing in the JVMs of brokers and Spark."""

import subprocess
from pathlib import Path

from sparkmirror.clusters import ensure_jars, find_java, kafka_jars
from sparkmirror.clusters.broker import BrokerJvm
from sparkmirror.java.class_archive import ClassArchive

SHARED = "source: shared objects file (top)"
"""The note in -Xlog:class+load about a class from such an archive, as opposed to Java's own."""


def test_classes_come_from_the_archive_that_a_run_has_written(tmp_path: Path) -> None:
    jars = ensure_jars(kafka_jars())
    archive = ClassArchive(tmp_path / "tool.jsa")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        jvm = BrokerJvm(find_java().executable, jars, 64, options)
        tool = jvm.command("kafka.tools.StorageTool", "random-uuid")
        return subprocess.run(tool, check=True, capture_output=True, text=True)

    assert SHARED not in run("-Xlog:class+load", *archive.options).stdout
    archive.make(run)
    assert SHARED in run("-Xlog:class+load", *archive.options).stdout


def test_jvm_of_another_version_starts_without_the_class_archive(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "torn.jsa")
    archive.file.write_bytes(b"torn")
    jvm = BrokerJvm(find_java().executable, ensure_jars(kafka_jars()), 64, archive.options)
    tool = jvm.command("kafka.tools.StorageTool", "random-uuid")
    assert len(subprocess.run(tool, check=True, capture_output=True, text=True).stdout.splitlines()[-1]) == 22
