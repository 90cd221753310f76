"""The Spark session. That its end leaves nothing behind is shown where the folder's session ends."""

import gc
from pathlib import Path

import psutil
import pytest

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.engine.session import Session, default_master


def test_it_has_the_slots_that_were_asked_for(session: Session) -> None:
    assert session.slots == 8
    assert session.is_alive


def test_the_users_settings_win(session: Session) -> None:
    told = dict(session.spark.sparkContext.getConf().getAll())
    assert told["spark.ui.enabled"] == "false"
    assert told["spark.task.maxFailures"] == "1000000"


def test_python_runs_behind_a_first_job(session: Session) -> None:
    session.warm_up()
    started = [
        process.info["cmdline"] or []
        for process in psutil.process_iter(["ppid", "cmdline"])
        if process.info["ppid"] == session._jvm.pid
    ]
    assert any("sparkmirror.engine.worker_daemon" in command for command in started)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the pipe that PySpark leaves open
def test_a_jvm_that_does_not_come_up_is_said_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    with pytest.raises(SparkmirrorError, match=f"Spark did not start: .*its log is {log}"):
        Session.start(default_master(1), {"spark.driver.extraJavaOptions": "-Xms1x"}, log)
    assert "-Xms1x" in log.read_text()
    gc.collect()
