import os
import time
from pathlib import Path

import pytest

from sparkmirror.spark.log_files import spark_log_file

DAY_S = 86400


def test_of_old_logs_the_last_twenty_and_those_of_a_week_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "sparkmirror"
    folder.mkdir()
    for age in range(30):
        log = folder / f"spark-run-{age}.log"
        log.touch()
        os.utime(log, (time.time() - age * DAY_S, time.time() - age * DAY_S))
    (folder / "mine.log").touch()
    os.utime(folder / "mine.log", (0, 0))
    file = spark_log_file("run")
    assert file.parent == folder
    left = {each.name for each in folder.iterdir()}
    assert left == {"mine.log", *(f"spark-run-{age}.log" for age in range(20))}


def test_recent_logs_stay_however_many_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = spark_log_file("run").parent
    for number in range(30):
        (folder / f"spark-run-{number}.log").touch()
    spark_log_file("run")
    assert len(list(folder.iterdir())) == 30
