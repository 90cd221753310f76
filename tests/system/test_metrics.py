"""`/metrics` of a running mirror agrees with the records on the brokers."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import confluent_kafka as confluent
import pytest

from sparkmirror.cli.main import main
from sparkmirror.domain.ids import TopicPartition
from tests.support.broker_data import append, create_topic, delete_records, end_offsets, numbered, records
from tests.support.metrics_page import Page, page_of
from tests.support.mirror import REPLICATION, START_TIMEOUT_S, Mirror, running_mirror
from tests.support.waiting import await_value
from tests.system.consumer_groups import committed
from tests.system.dual_run import Sides

ALIAS: Final = "metered"
QUICK, SLOW = "measures.quick", "measures.slow"
REFUSED: Final = "measures-quick"
"""The pattern of the first selects it, too; its target refuses its records."""
GROUP: Final = "metered-group"
LAG_GROUP: Final = "metered-lag"
RECORD_BYTES: Final = 10_000
WAIT_S: Final = 90.0

COORDINATOR_MOVES: Final = frozenset(
    {confluent.KafkaError.COORDINATOR_LOAD_IN_PROGRESS, confluent.KafkaError.NOT_COORDINATOR}
)
SOURCE: Final = "kafka_connect_mirror_source_connector_"
PARTITION: Final = ("destination", "topic", "partition")
LIMIT: Final = f"{ALIAS}->B.topic.max.bytes.per.second"


def properties(sides: Sides, slow_limit: int) -> dict[str, str]:
    return {
        **REPLICATION,
        "clusters": f"{ALIAS}, B",
        f"{ALIAS}.bootstrap.servers": sides.source.bootstrap_servers,
        "B.bootstrap.servers": sides.target.bootstrap_servers,
        f"{ALIAS}->B.enabled": "true",
        f"{ALIAS}->B.topics": f"{QUICK}, {SLOW}",
        f"{ALIAS}->B.groups": f"{GROUP}, {LAG_GROUP}",
        f"{ALIAS}->B.lag.group.id": LAG_GROUP,
        f"{ALIAS}->B.emit.heartbeats.enabled": "true",
        LIMIT: f"{SLOW}={slow_limit}",
        f"{ALIAS}.consumer.max.partition.fetch.bytes": str(2 * RECORD_BYTES),
        "heartbeats.replication.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "emit.checkpoints.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "tasks.max": "2",
    }


@pytest.fixture(scope="module")
def mirror(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """A mirror with 300 records in two partitions, and another topic that is throttled."""
    create_topic(sides.source.bootstrap_servers, QUICK, partitions=2)
    create_topic(sides.source.bootstrap_servers, SLOW)
    append(sides.source, QUICK, numbered(100), partition=0)
    append(sides.source, QUICK, numbered(200), partition=1)
    one_a_batch = {"batch.size": str(RECORD_BYTES)}
    append(sides.source, SLOW, [(b"key", b"v" * RECORD_BYTES)] * 50, partition=0, settings=one_a_batch)
    commit(sides, TopicPartition(QUICK, 1), 60)
    folder = tmp_path_factory.mktemp("metered") / "mirror"
    # A fetch of two records every 40 s: there is lag for a quarter of an hour, and no stall.
    served = ("--metrics-port", "127.0.0.1:0", "--http", "127.0.0.1:0")
    with running_mirror(folder, properties(sides, RECORD_BYTES // 20), *served) as it:
        yield it
        it.stop()


def commit(sides: Sides, partition: TopicPartition, offset: int) -> None:
    """The first commit of a cluster finds no coordinator yet."""
    settings = {"bootstrap.servers": sides.source.bootstrap_servers, "group.id": GROUP}
    consumer = confluent.Consumer(settings)

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=[confluent.TopicPartition(*partition, offset)], asynchronous=False)
        except confluent.KafkaException as error:
            if error.args[0].code() not in COORDINATOR_MOVES:
                raise
            return False
        return True

    await_value(is_committed, WAIT_S, lambda: f"{GROUP} has no coordinator")
    consumer.close()


@pytest.fixture(scope="module")
def page(mirror: Mirror) -> Page:
    return page_of(mirror)


def test_record_counts_equal_those_of_the_target(sides: Sides, page: Page) -> None:
    remote = f"{ALIAS}.{QUICK}"
    await_value(
        lambda: page.by_partition(f"{SOURCE}record_count", remote) == {0: 100, 1: 200},
        START_TIMEOUT_S,
        lambda: f"counted {page.by_partition(f'{SOURCE}record_count', remote)}",
    )
    assert end_offsets(sides.target, [remote]) == {
        TopicPartition(remote, 0): 100,
        TopicPartition(remote, 1): 200,
    }
    of = {"source": ALIAS, "destination": "B", "target": "B", "topic": remote, "partition": "1"}
    assert (page.one(f"{SOURCE}record_rate", **of) or 0) > 0
    assert (page.one(f"{SOURCE}byte_count", **of) or 0) > 0
    latency = [
        page.one(f"{SOURCE}replication_latency_ms{suffix}", **of) for suffix in ("_min", "_avg", "_max")
    ]
    assert latency == sorted(filter(None, latency))
    assert page.by_partition("sparkmirror_lag_records", remote) == {0: 0, 1: 0}
    assert page.by_partition("sparkmirror_lag_seconds", remote) == {0: 0, 1: 0}


def url_of(mirror: Mirror) -> str:
    return mirror.await_log("pages are at http://").rpartition(" ")[2].removesuffix("/ui/")


def test_pages_and_view_tell_the_same_as_the_metrics(mirror: Mirror, page: Page) -> None:
    url = url_of(mirror)

    def read(path: str) -> str:
        with urlopen(f"{url}/{path}", timeout=10) as response:
            text: str = response.read().decode()
            return text

    flow = f"flow={ALIAS}-%3EB"

    def words() -> dict[str, str]:
        (seen,) = json.loads(read(f"mirror?{flow}"))["flows"]
        return {each["name"]: each["state"]["word"] for each in seen["topics"]["items"]}

    def is_known() -> bool:
        (seen,) = json.loads(read(f"mirror?{flow}&groups=true"))["flows"]
        return bool(seen["groups"]["total"]) and seen["heartbeat_age_seconds"] is not None

    def translation() -> list[bool | None]:
        (seen,) = json.loads(read(f"mirror?{flow}&topic={QUICK}"))["flows"]
        groups = [each for each in seen["may_move"] if each["what"] == GROUP]
        return [each["checks"][0]["holds"] for each in groups]

    await_value(is_known, WAIT_S, lambda: read(f"mirror?{flow}&groups=true"))
    await_value(lambda: words().get(QUICK) == "caught up", WAIT_S, lambda: read(f"mirror?{flow}"))
    view = json.loads(read(f"mirror?{flow}"))
    assert {each["alias"]: each["answers"] for each in view["clusters"]} == {ALIAS: True, "B": True}
    topics = {each["name"]: each for each in view["flows"][0]["topics"]["items"]}
    assert topics[QUICK]["lag_records"] == 0
    assert topics[SLOW]["lag_records"] == page.one("sparkmirror_lag_records", topic=f"{ALIAS}.{SLOW}")
    (quick,) = json.loads(read(f"mirror?{flow}&topic={QUICK}"))["flows"]
    ends = {each["partition"]: each["source_end"] for each in quick["partitions"]["items"]}
    assert ends == {0: 100, 1: 200}
    await_value(lambda: translation() == [True], WAIT_S, lambda: read(f"mirror?{flow}&groups=true"))
    assert QUICK in read(f"ui/flow?{flow}")
    assert GROUP in read(f"ui/groups?{flow}")
    assert ALIAS in read("ui/")

    def events() -> list[str]:
        (seen,) = json.loads(read(f"mirror?{flow}&events=true"))["flows"]
        return [each["kind"] for each in seen["events"]["items"]]

    await_value(lambda: "started" in events(), WAIT_S, lambda: read(f"ui/events?{flow}"))
    workings = read(f"ui/connectors?{flow}")
    assert "<bdi>source.cluster.alias</bdi>" in workings
    assert (view["flows"][0]["spark_slots"] or 0) > 0
    assert json.loads(read("health"))["status"] == "healthy"
    assert read("metrics").startswith("# HELP")


def test_the_drivers_jvm_is_measured(page: Page) -> None:
    def heap() -> float:
        return page.one("jvm_memory_used_bytes", area="heap") or 0.0

    await_value(lambda: heap() > 1e6, WAIT_S, lambda: f"heap {heap()}")
    assert (page.one("jvm_threads_current") or 0) > 5
    assert (page.one("jvm_memory_max_bytes", area="heap") or 0) >= heap()


def test_lag_equals_the_records_missing_at_the_target(sides: Sides, page: Page) -> None:
    remote = f"{ALIAS}.{SLOW}"

    def lags() -> tuple[float | None, int]:
        (source,), (target,) = (
            end_offsets(side, [topic]).values() for side, topic in zip(sides, (SLOW, remote), strict=True)
        )
        return page.one("sparkmirror_lag_records", topic=remote), source - target

    def agree() -> bool:
        reported, true = lags()
        return reported == true and 0 < true < 50

    await_value(agree, WAIT_S, lambda: f"reported, true: {lags()}")
    missing = list(records(sides.source, SLOW))[-lags()[1]]
    age_s = time.time() - missing.timestamp()[1] / 1000
    # Progress records and the page are up to a second old, and latency buckets are 7 % wide.
    assert page.one("sparkmirror_lag_seconds", topic=remote) == pytest.approx(age_s, abs=5.0, rel=0.1)
    consumers = page.read()["kafka_consumer_fetch_manager_records_lag"]
    (reported,) = (value for of, value in consumers if of["topic"] == SLOW)
    assert reported == lags()[1]


def test_lag_command_tells_scripts_whether_the_mirror_has_caught_up(
    mirror: Mirror, page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    file, quick = str(mirror.file), ["--topic", "measures[.]quick"]
    assert main(["lag", file, *quick, "--wait", "--timeout", "60", "-o", "json"]) == 0
    (lag,) = json.loads(capsys.readouterr().out)
    assert (lag["records"], lag["unknown_partitions"], len(lag["partitions"])) == (0, 0, 2)
    assert main(["lag", file, "--max-seconds", "0"]) == 1
    said = capsys.readouterr().out
    assert f"{ALIAS}->B: " in said
    assert f"{SLOW}-0" in said
    assert main(["lag", file, "--topic", SLOW, "--max-seconds", "1000000"]) == 0
    capsys.readouterr()
    assert main(["lag", file, "--topic", SLOW, "--max-seconds", "1", "-o", "json"]) == 1
    ((slow,),) = (each["partitions"] for each in json.loads(capsys.readouterr().out))
    assert slow["seconds"] > 1
    assert main(["lag", file, "--topic", SLOW, "--max-records", "1000"]) == 0
    assert "caught up, 1 partition, " in capsys.readouterr().out
    assert main(["lag", file, "--topic", "nothing"]) == 2
    assert main(["lag", file, "--flow", "B->nowhere"]) == 2
    assert "no flow B->nowhere" in capsys.readouterr().err


def test_status_command_tells_how_the_mirror_is(
    mirror: Mirror, page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(mirror.file), "-o", "json"]) == 0
    (flow,) = json.loads(capsys.readouterr().out)
    assert (flow["state"], flow["running"], flow["unknown_partitions"]) == ("catching up", True, 0)
    assert flow["process"].startswith("process ")
    topics = {each["topic"]: each for each in flow["topics"]}
    assert topics[SLOW]["lag_records"] > 0
    assert (topics[QUICK]["partitions"], topics[QUICK]["lag_records"]) == (2, 0)
    assert main(["status", str(mirror.file)]) == 0
    assert f"{ALIAS}->B: catching up, " in capsys.readouterr().out


def test_tasks_measure_what_dashboards_ask_of_them(page: Page) -> None:
    def total(name: str) -> float:
        return sum(value for _, value in page.read().get(name, []))

    await_value(
        lambda: total("kafka_consumer_incoming_byte_total") > 10_000,
        WAIT_S,
        lambda: f"{total('kafka_consumer_incoming_byte_total')} bytes came in",
    )
    assert total("kafka_producer_outgoing_byte_total") > 10_000
    assert total("kafka_consumer_connection_count") >= 1
    assert total("kafka_producer_connection_count") >= 1
    assert page.one("kafka_connect_connector_task_offset_commit_max_time_ms", task="0") is not None
    (consumer,) = {
        of["clientId"] for of, _ in page.read()["kafka_consumer_fetch_manager_fetch_latency_avg"]
    } - {f'"{ALIAS}->B|MirrorSourceConnector-1|replication-consumer"'}
    assert consumer == f'"{ALIAS}->B|MirrorSourceConnector-0|replication-consumer"'
    buffers = ("kafka_producer_buffer_total_bytes", "kafka_producer_buffer_available_bytes")
    whole, free = (total(name) for name in buffers)
    assert 0 < free <= whole


def test_groups_tell_how_well_they_are_translated(page: Page) -> None:
    of = {"group": GROUP, "translation": "exact"}
    await_value(
        lambda: page.one("sparkmirror_group_partitions", **of) == 1,
        WAIT_S,
        lambda: f"{page.read().get('sparkmirror_group_partitions')}",
    )
    assert page.one("sparkmirror_group_reread_records", group=GROUP) == 0
    assert (page.one("sparkmirror_last_translation_timestamp_seconds") or 0) > time.time() - 60


def test_events_tell_of_starts_and_incidents(mirror: Mirror, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", str(mirror.file), "-o", "json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(event["flow"], event["connector"]) for event in events} == {
        (f"{ALIAS}->B", "MirrorSourceConnector")
    }
    assert "started" in {event["kind"] for event in events}
    configured = next(event["text"] for event in events if event["kind"] == "configured")
    assert "tasks.max=2" in configured
    assert main(["events", str(mirror.file)]) == 0
    assert f"  {ALIAS}->B  started " in capsys.readouterr().out


def test_a_group_on_the_source_shows_the_lag_and_is_not_mirrored(
    sides: Sides, mirror: Mirror, page: Page
) -> None:
    def shown() -> Mapping[int, int]:
        return committed(sides.source, LAG_GROUP, QUICK, 2)

    await_value(lambda: shown() == {0: 100, 1: 200}, WAIT_S, lambda: f"{shown()}")
    (end,) = end_offsets(sides.source, [SLOW]).values()
    await_value(
        lambda: 0 < committed(sides.source, LAG_GROUP, SLOW, 1).get(0, 0) < end, WAIT_S, lambda: "no lag"
    )
    mirror.await_log("writes checkpoints of 1 of", timeout_s=WAIT_S)
    assert committed(sides.target, LAG_GROUP, f"{ALIAS}.{QUICK}", 2) == {}


def test_connectors_tasks_checkpoints_and_heartbeats_are_counted(page: Page) -> None:
    of = {"source": ALIAS, "target": "B"}
    group = {**of, "group": GROUP, "topic": f"{ALIAS}.{QUICK}", "partition": "1"}
    name = "kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms"
    await_value(lambda: page.one(name, **group), WAIT_S, lambda: "no checkpoint")
    assert page.one("sparkmirror_checkpoint_groups", **of) == 1
    beats = "sparkmirror_heartbeats_total"
    await_value(lambda: page.one(beats, **of) or None, WAIT_S, lambda: "no heartbeat")
    beaten_at = page.one("sparkmirror_last_heartbeat_timestamp_seconds", **of)
    assert beaten_at == pytest.approx(time.time(), abs=10.0)
    status = {"connector": "MirrorSourceConnector", "status": "running"}
    assert [page.one("kafka_connect_connector_status", task=task, **status) for task in "01"] == [1, 1]
    assert page.one("kafka_connect_worker_connector_count") == 3
    assert page.one("sparkmirror_partitions", **of, state="running") == 3


def test_lost_records_are_counted(sides: Sides, mirror: Mirror, page: Page) -> None:
    (end,) = end_offsets(sides.source, [SLOW]).values()
    delete_records(sides.source, SLOW, end)
    mirror.configure(properties(sides, 100 * RECORD_BYTES))
    of = {"source": ALIAS, "connector": "MirrorSourceConnector"}
    lost = await_value(
        lambda: page.one("sparkmirror_lost_records_total", **of) or None, WAIT_S, mirror.log_text
    )
    assert lost + sum(end_offsets(sides.target, [f"{ALIAS}.{SLOW}"]).values()) == end
    assert page.one("sparkmirror_incidents_total", **of, kind="records-lost") == 1
    assert page.one("sparkmirror_partition_incidents", topic=f"{ALIAS}.{SLOW}", kind="records-lost") == 1
    assert page.one("sparkmirror_incidents_total", **of, kind="source-recreated") == 0


def test_a_file_and_a_url_give_the_same_words_and_exit_codes(
    sides: Sides, mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    status = "state", "running", "process", "lag_records", "unknown_partitions", "unfenced_partitions"
    parts = "topics", "failed", "retrying", "groups", "promoted"

    def told(of: str) -> list[tuple[int, object]]:
        found: list[tuple[int, object]] = []
        code = main(["status", of, "-o", "json"])
        (flow,) = json.loads(capsys.readouterr().out)
        found.append((code, [flow[key] for key in (*status, *parts)]))
        for more in ([], ["--max-seconds", "0"], ["--topic", "nothing"]):
            code = main(["lag", of, *more, "-o", "json"])
            (flow,) = json.loads(capsys.readouterr().out)
            found.append((code, [{**it, "seconds": None} for it in flow["partitions"]]))
        return found

    def await_same(codes: list[int]) -> None:
        """A heartbeat's or a report's time may lie between both."""

        def same() -> bool:
            by_file, by_url = told(str(mirror.file)), told(url_of(mirror))
            return by_file == by_url and [code for code, _ in by_file] == codes

        await_value(same, WAIT_S, lambda: f"{told(str(mirror.file))}\n{told(url_of(mirror))}")

    mirror.configure(properties(sides, 100 * RECORD_BYTES))
    await_same([0, 0, 0, 2])
    small = {"max.message.bytes": "200"}
    create_topic(sides.target.bootstrap_servers, f"{ALIAS}.{REFUSED}", config=small)
    create_topic(sides.source.bootstrap_servers, REFUSED)
    append(sides.source, REFUSED, [(b"key", b"v" * RECORD_BYTES)], partition=0)
    await_same([1, 1, 1, 2])
    main(["status", str(mirror.file)])
    by_file = capsys.readouterr().out
    assert f"{ALIAS}->B: action required, 1 record to copy in 4 partitions" in by_file
    assert f"  {REFUSED}-0: " in by_file


def test_port_in_use_is_an_error_before_the_start(sides: Sides, page: Page, tmp_path: Path) -> None:
    port = page.url.rpartition(":")[2].partition("/")[0]
    second = Mirror(tmp_path / "second", properties(sides, 1), "--metrics-port", f"127.0.0.1:{port}")
    try:
        second.start()
        assert second.wait(WAIT_S) == 3
        assert f"metrics can't be served at 127.0.0.1, port {port}" in second.log_text()
        assert not second.spark_log.exists()
    finally:
        second.close()
