"""`spark-submit $(sparkmirror submit-file) run FILE`: settings and pages are those of spark-submit."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import javaproperties
import psutil
import pyspark
import urllib3

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import ReservedPort
from sparkmirror.clusters.processes import start_process
from tests.spark.programs import await_end
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.command_lines import words_of
from tests.support.mirror import COMMAND, REPLICATION
from tests.support.waiting import await_value

SUBMIT: Final = Path(pyspark.__file__).parent / "bin" / "spark-submit"
WAIT_S: Final = 120.0


def test_a_submitted_mirror_copies_with_sparks_pages_and_stops_in_order(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path
) -> None:
    create_topic(source_cluster.bootstrap_servers, "submitted", partitions=2)
    append(source_cluster, "submitted", numbered(10))
    file, log = tmp_path / "mm2.properties", tmp_path / "submit.log"
    properties = {
        **REPLICATION,
        "clusters": "submitter, submit-target",
        "submitter.bootstrap.servers": source_cluster.bootstrap_servers,
        "submit-target.bootstrap.servers": target_cluster.bootstrap_servers,
        "submitter->submit-target.enabled": "true",
        "submitter->submit-target.topics": "submitted",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
    }
    file.write_text(javaproperties.dumps(properties), encoding="ascii")
    program = subprocess.run(
        [COMMAND, "submit-file"], capture_output=True, text=True, check=True
    ).stdout.strip()
    port = ReservedPort()
    number = port.number
    port.release()
    settings = ["--master", "local[4]", "--conf", f"spark.ui.port={number}"]
    command = [str(SUBMIT), *settings, program, "run", str(file)]
    process = start_process([["env", f"PYSPARK_PYTHON={sys.executable}", *command]], log, outlives_us=False)
    try:
        await_value(
            lambda: sum(end_offsets(target_cluster, ["submitter.submitted"]).values()) == 10,
            WAIT_S,
            log.read_text,
        )
        pages = f"http://127.0.0.1:{number}/api/v1/applications"
        answer = urllib3.request("GET", pages, timeout=WAIT_S, retries=False).json()
        assert [each["name"] for each in answer] == ["sparkmirror"]
        (mirror,) = (it for it in psutil.Process(process.pid).children(recursive=True) if is_mirror(it))
        mirror.send_signal(signal.SIGTERM)
        await_end(process, WAIT_S, log)
        assert process.exit_code == 0, log.read_text()
    finally:
        process.kill()
    assert "stopped; the last positions are written" in log.read_text()


def is_mirror(process: psutil.Process) -> bool:
    words = words_of(process)
    return (
        bool(words) and "python" in Path(words[0]).name and any(word.endswith("submit.py") for word in words)
    )
