"""A Java worker continues from Connect topics that sparkmirror wrote, and sparkmirror from Java's."""

import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.clusters import LocalCluster
from sparkmirror.connect.topics.config_records import (
    ConfigFold,
    ConnectConfigs,
    SessionKey,
    StoredLevel,
    commit_record,
    connector_record,
    logger_record,
    session_key_record,
    target_state_record,
    task_record,
)
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.offset_records import offset_record, parse_offset_key
from sparkmirror.connect.topics.offsets_topic import read_connector_offsets, write_connector_offsets
from sparkmirror.connect.topics.status_records import (
    StatusFold,
    connector_status_record,
    removed_topic_record,
    task_status_record,
    topic_record,
)
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.domain.connect import ConnectorOffset, State, Status, TargetState
from tests.support.broker_data import Keyed, create_topic, keyed
from tests.support.connections import connection
from tests.support.waiting import await_value
from tests.system.java_mm2 import ConnectWorker, connect_worker, connector_class

WAIT_S: Final = 90.0
CONFIGS: Final = "stored-configs"
STATUSES: Final = "stored-statuses"
OFFSETS: Final = "stored-offsets"
SOURCE: Final = connector_class("MirrorSourceConnector")
CHECKPOINT: Final = connector_class("MirrorCheckpointConnector")
HEARTBEAT: Final = connector_class("MirrorHeartbeatConnector")
ODD: Final = 'größe "\U0001f600" \x01\t/'
"""A string with all kinds of characters that JSON escapes."""
FAILED_STATUS: Final = Status(State.FAILED, "elsewhere:8083", 1, f"why: {ODD}")
KEY: Final = SessionKey(bytes(range(32)), "HmacSHA256", int(time.time() * 1000))
ORDERS: Final = {"cluster": "A", "partition": 0, "topic": "stored.orders"}
GROUP: Final = {"partition": 3, "topic": "A.stored.orders", "group": "g"}


def test_java_continues_from_our_topics_and_ours_from_javas(
    target_cluster: LocalCluster, tmp_path: Path
) -> None:
    """One run of a Java worker serves both directions, because its start takes long."""
    write_ours(target_cluster)
    with connect_worker(tmp_path, worker_properties(target_cluster)) as worker:
        show_ours(worker, target_cluster)
        change(worker, target_cluster)
        shown = {name: worker.ask("GET", f"/connectors/{name}/config") for name in ("hb", "msc")}
        worker.stop()
    show_javas(target_cluster, shown)
    assert reencoded_kinds(target_cluster) >= {
        "connector-",
        "target-state-",
        "task-",
        "commit-",
        "logger-cluster-",
        "session-key",
        "status-connector-",
        "status-task-",
        "status-topic-",
        "[",
    }


# written by sparkmirror, shown by Java


def write_ours(cluster: LocalCluster) -> None:
    for topic, partitions in ((CONFIGS, 1), (STATUSES, 3), (OFFSETS, 4)):
        compacted = {"cleanup.policy": "compact"}
        create_topic(cluster.bootstrap_servers, topic, partitions=partitions, config=compacted)
    settings = connection(cluster)
    with closing(ConfigTopic(settings, CONFIGS)) as configs:
        configs.put_session_key(KEY)
        configs.put_connector("hb", config(cluster, "hb", HEARTBEAT))
        configs.put_connector("msc", config(cluster, "msc", SOURCE), TargetState.PAUSED)
        configs.put_task_configs("msc", [source_task(cluster)])
        configs.put_connector("cpc", config(cluster, "cpc", CHECKPOINT))
        configs.put_task_configs("cpc", [source_task(cluster)])
        configs.put_target_state("cpc", TargetState.STOPPED)
        configs.put_task_configs("cpc", [])
        configs.put_connector("gone", config(cluster, "gone", HEARTBEAT))
        configs.remove_connector("gone")
    with closing(StatusTopic(settings, STATUSES)) as statuses:
        statuses.put_connector("failed", FAILED_STATUS)
        statuses.put_task("failed", 0, FAILED_STATUS)
        statuses.put_topic("cpc", "A.checkpoints.internal", 0, 1_700_000_000_123)
    write_connector_offsets(
        settings,
        OFFSETS,
        "msc",
        SOURCE,
        [
            ConnectorOffset({"topic": "stored.orders", "cluster": "A", "partition": 0}, {"offset": 41}),
            ConnectorOffset({**ORDERS, "topic": ODD}, {"offset": 2**62}),
            ConnectorOffset({**ORDERS, "partition": 1}, None),
        ],
    )
    write_connector_offsets(settings, OFFSETS, "cpc", CHECKPOINT, [ConnectorOffset(GROUP, {"offset": 0})])


def show_ours(worker: ConnectWorker, cluster: LocalCluster) -> None:
    await_states(worker, {"hb": State.RUNNING, "msc": State.PAUSED, "cpc": State.STOPPED})
    assert sorted(worker.ask("GET", "/connectors")) == ["cpc", "hb", "msc"]
    assert worker.ask("GET", "/connectors/msc/config") == config(cluster, "msc", SOURCE)
    assert worker.ask("GET", "/connectors/msc/tasks") == [
        {"id": {"connector": "msc", "task": 0}, "config": source_task(cluster)}
    ]
    assert worker.ask("GET", "/connectors/cpc/tasks") == []
    assert worker.ask("GET", "/connectors/cpc/topics") == {"cpc": {"topics": ["A.checkpoints.internal"]}}
    # Java drops states of connectors that don't exist.
    await_value(
        lambda: (
            {(b"status-connector-failed", None), (b"status-task-failed-0", None)}
            <= {*keyed(cluster, STATUSES)}
        ),
        WAIT_S,
        worker.log_text,
    )
    assert offsets_shown(worker, "msc") == [({**ORDERS, "topic": ODD}, 2**62), (ORDERS, 41)]
    assert offsets_shown(worker, "cpc") == [(GROUP, 0)]


# written by Java, read by sparkmirror


def change(worker: ConnectWorker, cluster: LocalCluster) -> None:
    worker.put("hb", {**config(cluster, "hb", HEARTBEAT), "note": ODD})
    ask(worker, "PUT", "/connectors/msc/stop")
    await_states(worker, {"msc": State.STOPPED})
    assert offsets_shown(worker, "msc") == [({**ORDERS, "topic": ODD}, 2**62), (ORDERS, 41)]
    altered = {"offsets": [{"partition": ORDERS, "offset": {"offset": 99}}]}
    ask(worker, "PATCH", "/connectors/msc/offsets", altered)
    ask(worker, "PUT", "/admin/loggers/org.stored?scope=cluster", {"level": "WARN"})
    ask(worker, "DELETE", "/connectors/cpc")
    await_value(
        lambda: worker.ask("GET", "/connectors/hb/topics") == {"hb": {"topics": ["heartbeats"]}},
        WAIT_S,
        worker.log_text,
    )
    ask(worker, "POST", "/connectors/hb/restart?includeTasks=true&onlyFailed=false")


def show_javas(cluster: LocalCluster, shown: Mapping[str, object]) -> None:
    configs = read_configs(cluster)
    assert configs.connectors == shown
    assert configs.target_states == {"hb": TargetState.RUNNING, "msc": TargetState.STOPPED}
    assert configs.inconsistent == frozenset()
    assert configs.task_configs["msc"] == ()
    (task,) = configs.task_configs["hb"]
    assert task["note"] == ODD
    assert task["task.class"].endswith("MirrorHeartbeatTask")
    assert configs.session_key == KEY
    with closing(StatusTopic(connection(cluster), STATUSES)) as statuses:
        statuses.read_to_end(WAIT_S)
        states = {name: status.state for name, status in statuses.connectors().items()}
        assert states == {"hb": State.UNASSIGNED, "msc": State.UNASSIGNED}
        assert statuses.tasks("hb").keys() == {0}
        assert statuses.tasks("msc") == {}
        assert statuses.topics("hb") == ["heartbeats"]
    settings = connection(cluster)
    assert read_connector_offsets(settings, OFFSETS, "msc") == [
        ConnectorOffset({**ORDERS, "topic": ODD}, {"offset": 2**62}),
        ConnectorOffset(ORDERS, {"offset": 99}),
    ]
    assert read_connector_offsets(settings, OFFSETS, "hb") == [
        ConnectorOffset({"sourceClusterAlias": "A", "targetClusterAlias": "B"}, {"offset": 0})
    ]


def read_configs(cluster: LocalCluster) -> ConnectConfigs:
    with closing(ConfigTopic(connection(cluster), CONFIGS)) as configs:
        configs.read_to_end(WAIT_S)
        return configs.configs


def reencoded_kinds(cluster: LocalCluster) -> set[str]:
    """Decode and encode every record alone; returns the kinds of records found."""
    kinds: Counter[str] = Counter()
    for topic in (CONFIGS, STATUSES, OFFSETS):
        for key, value in keyed(cluster, topic):
            kind, again = reencoded((key, value))
            assert (again.key, again.value) == (key, value)
            kinds[kind] += value is not None
    return {kind for kind, count in kinds.items() if count}


def reencoded(record: Keyed) -> tuple[str, LogRecord]:
    key, value = record
    assert key is not None
    text = key.decode()
    if text.startswith("["):
        connector, partition = parse_offset_key(key)
        offset = ConnectorOffset(partition, None if value is None else json.loads(value))
        return "[", offset_record(connector, offset)
    if text.startswith("status-"):
        return reencoded_status(LogRecord(key, value))
    return reencoded_config(LogRecord(key, value))


def reencoded_config(record: LogRecord) -> tuple[str, LogRecord]:
    kind, name = split((record.key or b"").decode())
    match kind:
        case "connector-":
            again = connector_record(name, folded(record)[1].connectors.get(name))
        case "target-state-":
            states = folded(connector_record(name, {}), record)[1].target_states
            again = target_state_record(name, None if record.value is None else states[name])
        case "task-":
            name, _, number = name.rpartition("-")
            before = [task_record(name, task, {}) for task in range(int(number))]
            commit = commit_record(name, int(number) + 1)
            configs = folded(connector_record(name, {}), *before, record, commit)[1]
            again = task_record(name, int(number), configs.task_configs[name][int(number)])
        case "commit-":
            tasks = [task_record(name, task, {}) for task in range(10)]
            configs = folded(connector_record(name, {}), *tasks, record)[1]
            again = commit_record(name, len(configs.task_configs[name]))
        case "restart-connector-":
            assert folded(record) == (None, ConnectConfigs())
            again = record  # sparkmirror writes none
        case _:
            again = reencoded_log_level_or_key(*folded(record))
    return kind, again


def reencoded_log_level_or_key(event: StoredLevel | None, configs: ConnectConfigs) -> LogRecord:
    if event is not None:
        return logger_record(event)
    assert configs.session_key is not None
    return session_key_record(configs.session_key)


def folded(*records: LogRecord) -> tuple[StoredLevel | None, ConnectConfigs]:
    """Fold the records; returns the last one's log level and the configs."""
    fold = ConfigFold()
    events = [fold.take(record) for record in records]
    return events[-1], fold.snapshot()


def reencoded_status(record: LogRecord) -> tuple[str, LogRecord]:
    kind, name = split((record.key or b"").decode())
    fold = StatusFold()
    fold.take(record)
    if kind == "status-connector-":
        return kind, connector_status_record(name, fold.connectors.get(name))
    if kind == "status-task-":
        name, _, task = name.rpartition("-")
        return kind, task_status_record(name, int(task), fold.tasks.get(name, {}).get(int(task)))
    topic, _, name = name.partition(":connector-")
    if record.value is None:
        return kind, removed_topic_record(name, topic)
    assert fold.topics == {name: {topic}}
    found = json.loads(record.value)["topic"]
    return kind, topic_record(name, topic, found["task"], found["discoverTimestamp"])


def split(key: str) -> tuple[str, str]:
    kinds = ("connector-", "target-state-", "task-", "commit-", "restart-connector-", "logger-cluster-")
    for kind in (*kinds, "session-key", "status-connector-", "status-task-", "status-topic-"):
        if key.startswith(kind):
            return kind, key.removeprefix(kind)
    pytest.fail(f"Java wrote a key of an unknown kind: {key}")


# worker and requests


def worker_properties(cluster: LocalCluster) -> dict[str, str]:
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "stored",
        "offset.flush.interval.ms": "500",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "config.storage.topic": CONFIGS,
        "status.storage.topic": STATUSES,
        "offset.storage.topic": OFFSETS,
    }


def config(cluster: LocalCluster, name: str, kind: str) -> dict[str, str]:
    return {
        "connector.class": kind,
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": cluster.bootstrap_servers,
        "target.cluster.bootstrap.servers": cluster.bootstrap_servers,
        "heartbeats.topic.replication.factor": "1",
        "topics": "stored.orders",
        "name": name,
    }


def source_task(cluster: LocalCluster) -> dict[str, str]:
    return {
        **config(cluster, "msc", SOURCE),
        "task.assigned.partitions": "stored.orders-0",
        "task.index": "0",
        "task.class": SOURCE.removesuffix("Connector") + "Task",
    }


def await_states(worker: ConnectWorker, states: Mapping[str, State]) -> None:
    def differing() -> dict[str, Any]:
        found = {name: worker.ask("GET", f"/connectors/{name}/status") for name in states}
        return {
            name: status
            for name, status in found.items()
            if status is None
            or {part["state"] for part in (status["connector"], *status["tasks"])} != {states[name].value}
        }

    await_value(lambda: not differing(), WAIT_S, lambda: f"{differing()}\n{worker.log_text()}")


def offsets_shown(worker: ConnectWorker, name: str) -> list[tuple[object, object]]:
    shown = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return sorted(
        ((each["partition"], each["offset"]["offset"]) for each in shown), key=lambda each: -each[1]
    )


def ask(worker: ConnectWorker, method: str, path: str, body: object = None) -> None:
    """Repeat the request until no rebalance prevents it."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    refusals: list[str] = []

    def done() -> bool:
        request = urllib.request.Request(f"{worker.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S):
                return True
        except urllib.error.HTTPError as error:
            with error:
                refusals[:] = [error.read().decode()]
            return False

    await_value(done, WAIT_S, lambda: f"{method} {path}: {refusals}")
