"""The units: checked by systemd's own tools, their messages read, and run by systemd itself."""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.package.systemd_machine import UNITS, Machine, require_systemd, running_machine
from tests.support.broker_data import append, create_topic, numbered
from tests.support.mirror import COMMAND, REPLICATION, START_TIMEOUT_S, STOP_TIMEOUT_S, Mirror
from tests.support.topic_reader import end_offsets
from tests.support.waiting import await_value

EXPOSURE_MAX: Final = 25
"""Ten times the number of `systemd-analyze security`."""
UNIT_FILES: Final = tuple(sorted(unit.name for unit in UNITS.glob("*.service")))
TOPIC: Final = "units.orders"


@pytest.mark.parametrize("unit", UNIT_FILES)
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("not run: needs systemd-analyze")
    file = tmp_path / unit.replace("@", "@west")
    file.write_text((UNITS / unit).read_text().replace("/opt/sparkmirror/bin/sparkmirror", COMMAND))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    security = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager"]
    judged = subprocess.run([*security, str(file)], capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("unit", UNIT_FILES)
def test_a_unit_ends_for_good_with_the_codes_that_no_restart_changes(unit: str) -> None:
    (codes,) = re.findall(r"^RestartPreventExitStatus=(.*)$", (UNITS / unit).read_text(), re.MULTILINE)
    assert codes.split() == (["2", "255"] if unit == "sparkmirror@.service" else ["2"])


class ServiceSocket:
    """The abstract socket of a service manager."""

    def __init__(self, name: str) -> None:
        self.address = f"@{name}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name}")
        self._socket.setblocking(False)
        self.messages: list[list[str]] = []

    def read(self) -> list[list[str]]:
        """Each message so far, as its lines."""
        try:
            while True:
                self.messages.append(self._socket.recv(4096).decode().splitlines())
        except BlockingIOError:
            return self.messages

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def clusters(source_cluster: LocalCluster, target_cluster: LocalCluster) -> tuple[LocalCluster, LocalCluster]:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=1)
    append(source_cluster, TOPIC, numbered(100))
    return source_cluster, target_cluster


def mm2(alias: str, clusters: tuple[LocalCluster, LocalCluster], **more: str) -> Mapping[str, str]:
    source, target = clusters
    return {
        **REPLICATION,
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": source.bootstrap_servers,
        "B.bootstrap.servers": target.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": TOPIC,
        **more,
    }


def with_secret(unit: str, file: str) -> Mapping[str, str]:
    """Settings that name a credential of the unit."""
    secret = f"${{file:/run/credentials/{unit}/{file}:password}}"
    return {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "B.sasl.jaas.config": f'x.PlainLoginModule required password="{secret}";',
    }


def test_a_mirror_tells_its_start_its_state_its_life_and_its_end(
    clusters: tuple[LocalCluster, LocalCluster], tmp_path: Path
) -> None:
    manager = ServiceSocket(f"sparkmirror-{os.getpid()}")
    mirror = Mirror(tmp_path / "told", mm2("told", clusters))
    mirror.environment = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "3000000"}
    try:
        mirror.start()
        await_value(
            lambda: ["READY=1"] in [it[:1] for it in manager.read()], START_TIMEOUT_S, mirror.log_text
        )
        ready = next(number for number, it in enumerate(manager.messages) if it[0] == "READY=1")
        assert all(it[0] == "EXTEND_TIMEOUT_USEC=300000000" for it in manager.messages[:ready])
        assert "started in" in mirror.log_text()
        well = ["WATCHDOG=1", "STATUS=told->B: caught up"]
        await_value(lambda: well in manager.read(), START_TIMEOUT_S, lambda: str(manager.messages))
        below = mirror.processes()
        assert any(process.name() == "java" for process in below)
        assert not any("NOTIFY_SOCKET" in it.environ() for it in below if it.pid != mirror._running.pid)
        mirror.stop()
        assert manager.read()[-1] == ["STOPPING=1", "STATUS=stopping in order"]
    finally:
        mirror.close()
        manager.close()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    require_systemd()
    with running_machine(tmp_path_factory.mktemp("systemd")) as started:
        yield started


def start(machine: Machine, unit: str) -> None:
    """`systemctl start` returns when the unit is active."""
    assert machine.systemctl("start", "--no-block", unit).returncode == 0
    machine.await_shown(unit, START_TIMEOUT_S, ActiveState="active", SubState="running")


def test_a_mirror_runs_hardened_under_systemd(
    clusters: tuple[LocalCluster, LocalCluster], machine: Machine
) -> None:
    """With a secret, a user and filters of system calls of its own; and it is restarted when it hangs."""
    unit = "sparkmirror@west.service"
    machine.write("/etc/credstore/west.secrets", "password=s3cret\n", 0o600)
    text = javaproperties.dumps(dict(mm2("west", clusters, **with_secret(unit, "west.secrets"))))
    machine.write("/etc/sparkmirror/west.properties", text)
    machine.write("/etc/sparkmirror/west.env", f"OPTIONS=--http {HOST}:0\n")
    machine.change("sparkmirror@.service", "[Service]\nWatchdogSec=12\nTimeoutAbortSec=1\nRestartSec=1\n")
    start(machine, unit)
    target = clusters[1].bootstrap_servers
    copies = [f"west.{TOPIC}"]
    await_value(
        lambda: sum(end_offsets(target, copies).values()) == 100, START_TIMEOUT_S, lambda: machine.log(unit)
    )
    machine.await_shown(unit, START_TIMEOUT_S, StatusText="west->B: caught up")
    process = machine.process(unit)
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    assert re.search(r"^Seccomp:\t2$", status, re.MULTILINE)
    assert process.uids().real != 0

    process.send_signal(signal.SIGSTOP)  # as a process that hangs
    machine.await_shown(unit, START_TIMEOUT_S, NRestarts="1", ActiveState="active", SubState="running")

    assert machine.systemctl("stop", unit).returncode == 0
    assert machine.show(unit, "Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}
    assert "s3cret" not in machine.log(unit)


def test_what_an_operator_has_to_change_is_one_line_and_no_restart(
    clusters: tuple[LocalCluster, LocalCluster], machine: Machine
) -> None:
    secret = with_secret("sparkmirror@bare.service", "bare.secrets")
    text = javaproperties.dumps(dict(mm2("bare", clusters, **secret)))
    machine.write("/etc/sparkmirror/bare.properties", text)
    for unit, named in (
        ("sparkmirror@nothing.service", "/etc/sparkmirror/nothing.properties"),
        ("sparkmirror@bare.service", "/run/credentials/sparkmirror@bare.service/bare.secrets"),
    ):
        assert machine.systemctl("start", unit).returncode != 0
        assert machine.show(unit, "ExecMainStatus", "NRestarts") == {"ExecMainStatus": "2", "NRestarts": "0"}
        (line,) = (it for it in machine.log(unit).splitlines() if "ERROR" in it)
        assert named in line


def test_a_port_in_use_is_named_and_tried_again(
    clusters: tuple[LocalCluster, LocalCluster], machine: Machine
) -> None:
    unit = "sparkmirror@busy.service"
    machine.write("/etc/sparkmirror/busy.properties", javaproperties.dumps(dict(mm2("busy", clusters))))
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        machine.write("/etc/sparkmirror/busy.env", f"OPTIONS=--http {HOST}:{port}\n")
        machine.systemctl("start", "--no-block", unit)
        machine.await_shown(unit, START_TIMEOUT_S, ExecMainStatus="3")
        assert f"can't be served at {HOST}, port {port}" in machine.log(unit)
    machine.await_shown(unit, START_TIMEOUT_S, ActiveState="active", SubState="running")
    machine.systemctl("stop", unit)


def test_a_worker_is_kafka_connect_service(
    clusters: tuple[LocalCluster, LocalCluster], machine: Machine
) -> None:
    port = ReservedPort()
    storage = {f"{it}.storage.topic": f"units-{it}" for it in ("config", "offset", "status")}
    factors = {f"{it}.storage.replication.factor": "1" for it in ("config", "offset", "status")}
    file = {
        "bootstrap.servers": clusters[1].bootstrap_servers,
        "group.id": "units",
        "listeners": f"http://{HOST}:{port.number}",
        **{
            f"{it}.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"
            for it in ("key", "value")
        },
        **storage,
        **factors,
    }
    machine.write("/etc/sparkmirror/connect-distributed.properties", javaproperties.dumps(file))
    enabled = machine.systemctl("enable", "sparkmirror-worker.service")
    assert "kafka-connect.service" in enabled.stderr
    start(machine, "kafka-connect.service")
    shown = machine.show("kafka-connect.service", "StatusText", "Id")
    assert shown["Id"] == "sparkmirror-worker.service"
    assert shown["StatusText"] == "Worker has completed startup and is ready to handle requests."
    machine.process("kafka-connect.service").send_signal(signal.SIGKILL)
    machine.await_shown("kafka-connect.service", START_TIMEOUT_S, NRestarts="1", ActiveState="active")
    assert machine.systemctl("stop", "kafka-connect.service").returncode == 0
    assert machine.show("sparkmirror-worker.service", "ExecMainStatus")["ExecMainStatus"] == "0"
    port.release()


def test_group_offset_sync_runs_under_systemd(
    clusters: tuple[LocalCluster, LocalCluster], machine: Machine
) -> None:
    unit = "group-offset-sync@billing.service"
    create_topic(clusters[1].bootstrap_servers, "units.checkpoints.internal", partitions=1)
    text = f"BOOTSTRAP_SERVERS_CONFIG = {clusters[1].bootstrap_servers}\n"
    machine.write("/etc/sparkmirror/destination.properties", text)
    options = "OPTIONS=-cgi billing -src units -pfp /etc/sparkmirror/destination.properties -int 1\n"
    machine.write("/etc/sparkmirror/group-offset-sync-billing.env", options)
    start(machine, unit)
    machine.await_shown(unit, STOP_TIMEOUT_S, StatusText="group billing: no checkpoint")
    assert machine.systemctl("stop", unit).returncode == 0
    assert machine.show(unit, "ExecMainStatus")["ExecMainStatus"] == "0"
