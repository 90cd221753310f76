"""The class path of the driver's JVM."""

import os
from pathlib import Path

import pytest

from sparkmirror.spark.session import spark_class_path


def test_jars_are_in_the_order_of_their_names_whatever_the_file_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("zstd.jar", "arrow.jar", "notes.txt", "netty.jar"):
        (jars / name).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    expected = [str(jars / name) for name in ("arrow.jar", "netty.jar", "zstd.jar")]
    assert spark_class_path().split(os.pathsep) == expected
