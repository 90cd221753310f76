"""The status topic on a real broker, with several partitions and workers."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import State, Status
from sparkmirror.domain.errors import RetriableError
from tests.support.broker_data import append, create_topic, latest, records
from tests.support.connections import connection
from tests.support.waiting import await_value

WAIT_S: Final = 60.0
RUNNING: Final = Status(State.RUNNING, "one:8083", 5)
ELSEWHERE: Final = Status(State.PAUSED, "two:8083", 6)
OLDER: Final = Status(State.UNASSIGNED, "one:8083", 5)


@pytest.fixture
def settings(target_cluster: LocalCluster) -> ConnectionSettings:
    return connection(target_cluster)


@pytest.fixture
def topic(target_cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    name = f"contract.connect-statuses.{request.node.name}"
    compacted = {"cleanup.policy": "compact"}
    create_topic(target_cluster.bootstrap_servers, name, partitions=5, config=compacted)
    return name


@pytest.fixture
def one(settings: ConnectionSettings, topic: str) -> Iterator[StatusTopic]:
    with closing(StatusTopic(settings, topic)) as made:
        made.read_to_end(WAIT_S)
        yield made


@pytest.fixture
def two(settings: ConnectionSettings, topic: str) -> Iterator[StatusTopic]:
    """The status topic of another worker."""
    with closing(StatusTopic(settings, topic)) as made:
        yield made


def test_one_instance_reads_what_another_writes(
    target_cluster: LocalCluster, topic: str, one: StatusTopic, two: StatusTopic
) -> None:
    for number in range(8):
        one.put_connector(f"c{number}", RUNNING)
    one.put_task("c0", 0, RUNNING)
    one.put_task("c0", 1, Status(State.FAILED, "one:8083", 5, "why"))
    one.put_topic("c0", "orders", 1, 1_700_000_000_123)
    one.put_topic("c0", "a", 0, 1_700_000_000_124)
    assert one.connectors() == {f"c{number}": RUNNING for number in range(8)}
    two.read_to_end(WAIT_S)
    assert two.connectors() == one.connectors()
    assert two.tasks("c0") == {0: RUNNING, 1: Status(State.FAILED, "one:8083", 5, "why")}
    assert two.topics("c0") == ["a", "orders"]
    assert two.tasks("c1") == {}
    assert two.topics("c1") == []
    assert len({record.partition() for record in records(target_cluster, topic)}) > 1
    assert latest(target_cluster, topic)[b"status-task-c0-1"] == (
        b'{"state":"FAILED","trace":"why","worker_id":"one:8083","generation":5,"version":null}'
    )


def test_a_connector_is_removed_with_its_tasks_and_topics(
    target_cluster: LocalCluster, topic: str, one: StatusTopic, two: StatusTopic
) -> None:
    for name in ("gone", "left"):
        one.put_connector(name, RUNNING)
        for task in range(2):
            one.put_task(name, task, RUNNING)
        one.put_topic(name, "orders", 0, 1)
    one.remove_connector("gone")
    one.remove_task("left", 1)
    one.put_topic("left", "payments", 0, 1)
    two.read_to_end(WAIT_S)
    for status in (one, two):
        assert status.connectors() == {"left": RUNNING}
        assert status.tasks("gone") == {}
        assert status.topics("gone") == []
        assert status.tasks("left") == {0: RUNNING}
        assert status.topics("left") == ["orders", "payments"]
    two.remove_topics("left")
    assert two.topics("left") == []
    kept = {key for key, value in latest(target_cluster, topic).items() if value is not None}
    assert kept == {b"status-connector-left", b"status-task-left-0"}


def test_older_statuses_are_not_written(one: StatusTopic, two: StatusTopic) -> None:
    two.put_connector("c", ELSEWHERE)
    two.put_task("c", 0, ELSEWHERE)
    one.read_to_end(WAIT_S)
    one.put_connector_safely("c", OLDER)
    one.put_task_safely("c", 0, OLDER)
    two.read_to_end(WAIT_S)
    for status in (one, two):
        assert (status.connectors(), status.tasks("c")) == ({"c": ELSEWHERE}, {0: ELSEWHERE})
    newer = Status(State.UNASSIGNED, "one:8083", 6)
    one.put_connector_safely("c", newer)
    one.put_task_safely("c", 0, newer)
    two.read_to_end(WAIT_S)
    for status in (one, two):
        assert (status.connectors(), status.tasks("c")) == ({"c": newer}, {0: newer})


def test_writer_sees_its_own_status_and_then_later_ones(one: StatusTopic, two: StatusTopic) -> None:
    """A writer sees its own status at once, and a later one of another worker after reading."""
    two.put_connector("before", ELSEWHERE)
    one.put_connector("before", RUNNING)
    one.put_connector("after", RUNNING)
    two.put_connector("after", ELSEWHERE)
    assert one.connectors() == {"before": RUNNING, "after": RUNNING}
    one.read_to_end(WAIT_S)
    assert one.connectors() == {"before": RUNNING, "after": ELSEWHERE}


def test_one_thread_polls_while_others_write(one: StatusTopic, two: StatusTopic) -> None:
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            one.poll(0.2)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        for number in range(20):
            mine, other = Status(State.RUNNING, "one:8083", number), Status(State.PAUSED, "two:8083", number)
            one.put_connector("mine", mine)
            assert one.connectors()["mine"] == mine
            two.put_connector("theirs", other)
        await_value(lambda: one.connectors().get("theirs") == other, WAIT_S, lambda: str(one.connectors()))
    finally:
        ended.set()
        poller.join(WAIT_S)
    assert one.connectors()["mine"] == mine


def test_partitions_have_several_leaders(trio: LocalCluster) -> None:
    topic = "contract.connect-statuses.spread"
    create_topic(trio.bootstrap_servers, topic, partitions=6)
    names = [f"c{number}" for number in range(12)]
    with (
        closing(StatusTopic(connection(trio), topic)) as writer,
        closing(StatusTopic(connection(trio), topic)) as reader,
    ):
        reader.read_to_end(WAIT_S)
        for name in names:
            writer.put_connector(name, RUNNING)

        def seen() -> bool:
            reader.poll(0.1)
            return reader.connectors() == dict.fromkeys(names, RUNNING)

        await_value(seen, WAIT_S, lambda: str(reader.connectors()))
    assert len({record.partition() for record in records(trio, topic)}) > 3


def test_a_topic_created_after_its_reader_is_read(
    target_cluster: LocalCluster, settings: ConnectionSettings
) -> None:
    """A node creates its topics just before it reads them, when some brokers do not know them yet."""
    late = "contract.connect-statuses.late"
    with closing(StatusTopic(settings, late)) as status, ThreadPoolExecutor(1) as pool:
        with pytest.raises(RetriableError, match=f"^read {late}: .*UNKNOWN_TOPIC_OR_PARTITION"):
            status.read_to_end(0.2)
        reading = pool.submit(status.read_to_end, WAIT_S)
        create_topic(target_cluster.bootstrap_servers, late, partitions=5)
        reading.result(WAIT_S)
        status.put_connector("c", RUNNING)
        assert status.connectors() == {"c": RUNNING}


def test_malformed_records_are_skipped(
    target_cluster: LocalCluster, topic: str, one: StatusTopic, caplog: pytest.LogCaptureFixture
) -> None:
    append(target_cluster, topic, [(b"status-connector-c", b"5"), (b"what", b"ever")], partition=3)
    one.put_connector("d", RUNNING)
    one.read_to_end(WAIT_S)
    assert one.connectors() == {"d": RUNNING}
    assert [record.message for record in caplog.records] == [
        f"{topic}: offset 0 is ignored: status-connector-c: it is no status",
        f"{topic}: offset 1 is ignored: what: it is none of a status topic's keys",
    ]
