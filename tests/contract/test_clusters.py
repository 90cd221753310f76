"""Local clusters of real brokers: start, kill, restart, stop, and cleanup of their processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import javaproperties
import psutil
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from sparkmirror.batches.record_batch import iterate_batches
from sparkmirror.clusters import ClusterSpec, LocalCluster, ensure_jars, kafka_jars, start_clusters
from sparkmirror.clusters.cluster_state import ClusterState
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.clusters.processes import start_process
from sparkmirror.clusters.storage import format_storage, is_formatted
from sparkmirror.domain.errors import ClusterStartError
from tests.support.batches import decode
from tests.support.waiting import await_value

WAIT_S = 20


def small(name: str, **changes: object) -> ClusterSpec:
    return ClusterSpec(name, heap_mb=128, **changes)  # type: ignore[arg-type]  # fields of the spec


def quiet_client(bootstrap_servers: str, **settings: str) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": bootstrap_servers, "log_level": 0, **settings}


def broker_ids(bootstrap_servers: str) -> set[int]:
    return set(AdminClient(quiet_client(bootstrap_servers)).list_topics(timeout=WAIT_S).brokers)


def produce(bootstrap_servers: str, value: bytes) -> None:
    producer = Producer(quiet_client(bootstrap_servers, acks="all"))
    producer.produce("kept", value)
    assert producer.flush(WAIT_S) == 0


def first_value(bootstrap_servers: str) -> bytes | str | None:
    consumer = Consumer(quiet_client(bootstrap_servers, **{"group.id": "test"}))
    try:
        consumer.assign([TopicPartition("kept", 0, 0)])
        message: Message | None = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()


def sessions_of(pids: tuple[int, ...]) -> list[psutil.Process]:
    """List every process in the brokers' sessions: JVMs and their guards."""
    return [process for process in psutil.process_iter() if _session(process.pid) in pids]


def assert_ended(processes: list[psutil.Process]) -> None:
    _gone, alive = psutil.wait_procs(processes, timeout=WAIT_S)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def bootstrap_records(storage: Path) -> list[tuple[bytes | None, bytes | None]]:
    batches = iterate_batches(memoryview((storage / "bootstrap.checkpoint").read_bytes()))
    return [(record.key, record.value) for batch in batches for record in decode(batch.data)]


def meta_properties(storage: Path) -> dict[str, str]:
    return dict(javaproperties.loads((storage / "meta.properties").read_text()))


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def test_clusters_respond_at_different_addresses(
    source_cluster: LocalCluster, target_cluster: LocalCluster
) -> None:
    assert source_cluster.bootstrap_servers != target_cluster.bootstrap_servers
    for cluster in (source_cluster, target_cluster):
        assert broker_ids(cluster.bootstrap_servers) == {0}


def test_data_survives_a_kill_and_a_stop_and_processes_end(tmp_path: Path) -> None:
    # A short session, because a restarted broker has to wait until its former session has expired.
    spec = small("one", settings={"broker.session.timeout.ms": "1500"})
    with LocalCluster.start(spec, tmp_path) as cluster:
        address = cluster.bootstrap_servers
        produce(address, b"first life")
        with pytest.raises(ClusterStartError, match="already running"):
            LocalCluster.start(spec, tmp_path)
        killed = sessions_of(cluster.pids)
        assert len(killed) == 2  # JVM and guard
        cluster.kill_broker(0)
        assert_ended(killed)
        assert cluster.pids == ()
        cluster.start_broker(0)
        assert first_value(address) == b"first life"
        running = sessions_of(cluster.pids)
    assert_ended(running)
    with LocalCluster.start(spec, tmp_path) as cluster:
        assert cluster.bootstrap_servers == address
        assert first_value(address) == b"first life"


def test_three_brokers_form_one_cluster_and_work_with_one_killed(tmp_path: Path) -> None:
    cluster = LocalCluster.start(small("three", brokers=3), tmp_path)
    try:
        assert broker_ids(cluster.bootstrap_servers) == {0, 1, 2}
        cluster.stop_broker(1)
        assert len(cluster.pids) == 2
        produce(cluster.bootstrap_servers, b"two of three")
        assert first_value(cluster.bootstrap_servers) == b"two of three"
    finally:
        cluster.stop(timeout_s=0)


def test_storage_is_formatted_as_by_kafkas_tool(tmp_path: Path) -> None:
    # A setting that may affect formatting, at its default value: Kafka's tool is run, with no difference.
    spec = small("by-tool", settings={"process.roles": "broker,controller"})
    cluster = LocalCluster(ClusterState.new(spec), tmp_path / "by-tool")
    by_tool = cluster.brokers[0].data
    try:
        cluster.launch()

        def formatted() -> bool:
            assert cluster.pids
            return is_formatted(by_tool)

        await_value(formatted, WAIT_S, cluster.brokers[0].log_since_launch)
    finally:
        cluster.stop(timeout_s=0)
    by_us = tmp_path / "by-us"
    format_storage(by_us, cluster.state.cluster_id, node_id=0)
    assert bootstrap_records(by_us) == bootstrap_records(by_tool)
    assert len(bootstrap_records(by_us)) > 2  # a header, a footer, features between them
    ours, theirs = meta_properties(by_us), meta_properties(by_tool)
    assert len(ours.pop("directory.id")) == len(theirs.pop("directory.id"))
    assert ours == theirs


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    spec = small("bad", settings={"log.retention.ms": "soon"})
    with pytest.raises(ClusterStartError, match=r"(?s)ended while starting.*Invalid value soon") as caught:
        LocalCluster.start(spec, tmp_path)
    assert str(tmp_path / "broker-0.log") in str(caught.value)


def test_failed_start_of_one_cluster_stops_the_others(tmp_path: Path) -> None:
    log = tmp_path / "good" / "broker-0.log"
    bad = small("bad", settings={"log.retention.ms": "soon"})
    with pytest.raises(ClusterStartError):
        start_clusters([(small("good"), tmp_path / "good"), (bad, tmp_path / "bad")])
    good = LocalCluster.attach(log.parent)
    assert good is not None
    assert good.pids == ()


def test_brokers_end_when_their_starter_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from sparkmirror.clusters import ClusterSpec, LocalCluster\n"
        "cluster = LocalCluster.start(ClusterSpec('orphan', heap_mb=128), pathlib.Path(sys.argv[1]))\n"
        "print(*cluster.pids, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        orphans = sessions_of(tuple(int(pid) for pid in starter.stdout.readline().split()))
        assert len(orphans) == 2
        starter.send_signal(signal.SIGKILL)
        assert_ended(orphans)


def test_process_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path) -> None:
    stubborn = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.2; done"]
    log = tmp_path / "log"
    process = start_process([stubborn], log, outlives_us=False)
    try:
        while not log.read_text():
            assert process.is_alive()
        family = sessions_of((process.pid,))
        assert not process.stop(timeout_s=0.3)
        assert_ended(family)
        assert process.exit_code == -signal.SIGKILL
    finally:
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a broker could not take it either")
def test_reserved_port_is_free_for_its_owner_only() -> None:
    port = ReservedPort()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port.number))
    finally:
        port.release()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Run `sparkmirror clusters …` with a cache folder of its own, which has the jars."""
    (tmp_path / "jars").symlink_to(ensure_jars(kafka_jars()).parent)
    environ = {**os.environ, "SPARKMIRROR_CACHE": str(tmp_path)}

    def run(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        main = "from sparkmirror.cli.main import main; raise SystemExit(main())"
        return subprocess.run(
            [sys.executable, "-c", main, "clusters", *arguments],
            env=environ,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    yield run
    run("down", "--all", "--delete-data")


def test_named_cluster_runs_until_clusters_down(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    up = command("up", "mine", "--set", "num.partitions=3")
    assert up.returncode == 0, up.stderr
    assert command("up", "mine").stdout == up.stdout
    address = up.stdout.split()[-1]
    assert broker_ids(address) == {0}
    assert "mine     0       up" in command("status").stdout
    cluster = LocalCluster.attach(tmp_path / "clusters" / "mine")
    assert cluster is not None
    running = sessions_of(cluster.pids)
    down = command("down", "mine")
    assert (down.returncode, down.stdout) == (0, "mine is down\n")
    assert_ended(running)
    assert command("status").returncode == 1


def test_kafkas_own_tools_run_on_a_named_cluster(
    command: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert command("up", "mine").returncode == 0
    made = command("tool", "mine", "kafka-topics", "--create", "--topic", "orders", "--partitions", "2")
    assert "Created topic orders." in made.stdout, made.stderr
    command("tool", "mine", "kafka-console-producer", "--topic", "orders", given="one\ntwo\n")
    read = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "60000", "--group", "billing")
    found = command("tool", "mine", "kafka-console-consumer", "--topic", "orders", *read)
    assert sorted(found.stdout.split()) == ["one", "two"], found.stderr
    groups = command("tool", "mine", "kafka-consumer-groups", "--list")
    assert groups.stdout.split() == ["billing"]
    assert command("tool", "mine", "kafka-topics", "--nonsense").returncode == 1
    command("down", "mine")
    refused = command("tool", "mine", "kafka-topics", "--list")
    assert (refused.returncode, refused.stderr) == (
        1,
        "sparkmirror: Cluster mine is down. Start it: sparkmirror clusters up mine\n",
    )
