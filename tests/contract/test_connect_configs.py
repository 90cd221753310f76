"""The config topic on a real broker: writers read their records back, readers see them in order."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.connect.topics.config_records import (
    SessionKey,
    StoredLevel,
    connector_record,
)
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.read_back_log import ReadBackLog
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import TargetState
from sparkmirror.domain.errors import KafkaError
from tests.support.broker_data import append, create_topic, keyed
from tests.support.connections import connection
from tests.support.proxy import Api, Disruption, Moment, proxied
from tests.support.waiting import patience

WAIT_S: Final = 60.0
LONG_S: Final = 60.0
"""Longer than a test may take: a poll that lasts this long was not woken."""
SOON_S: Final = 10.0
KEY: Final = SessionKey(b"secret", "HmacSHA256", 1_700_000_000_123)


@pytest.fixture
def settings(target_cluster: LocalCluster) -> ConnectionSettings:
    return connection(target_cluster)


@pytest.fixture
def topic(target_cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    name = f"contract.connect-configs.{request.node.name}"
    create_topic(target_cluster.bootstrap_servers, name, config={"cleanup.policy": "compact"})
    return name


@pytest.fixture
def configs(settings: ConnectionSettings, topic: str) -> Iterator[ConfigTopic]:
    with closing(ConfigTopic(settings, topic)) as made:
        made.read_to_end(WAIT_S)
        yield made


def test_a_write_returns_when_it_was_read_back(
    target_cluster: LocalCluster, settings: ConnectionSettings, topic: str, configs: ConfigTopic
) -> None:
    configs.put_connector("msc", {"b": "1", "a": "2"}, TargetState.STOPPED)
    assert configs.configs.target_states == {"msc": TargetState.STOPPED}
    configs.put_target_state("msc", TargetState.RUNNING)
    assert configs.configs.target_states == {"msc": TargetState.RUNNING}
    configs.put_task_configs("msc", [{"t": "0"}, {"t": "1"}])
    assert configs.configs.task_configs == {"msc": ({"t": "0"}, {"t": "1"})}
    configs.put_session_key(KEY)
    configs.put_connector("gone", {})
    configs.remove_connector("gone")
    configs.put_task_configs("msc", [])
    assert configs.configs.connectors == {"msc": {"b": "1", "a": "2"}}
    assert configs.configs.task_configs == {"msc": ()}
    assert configs.configs.session_key == KEY
    with closing(ConfigTopic(settings, topic)) as other:
        other.read_to_end(WAIT_S)
        assert other.configs == configs.configs
    assert keyed(target_cluster, topic) == [
        (b"target-state-msc", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"connector-msc", b'{"properties":{"b":"1","a":"2"}}'),
        (b"target-state-msc", b'{"state":"STARTED","state.v2":"STARTED"}'),
        (b"task-msc-0", b'{"properties":{"t":"0"}}'),
        (b"task-msc-1", b'{"properties":{"t":"1"}}'),
        (b"commit-msc", b'{"tasks":2}'),
        (
            b"session-key",
            b'{"key":"c2VjcmV0","algorithm":"HmacSHA256","creation-timestamp":1700000000123}',
        ),
        (b"connector-gone", b'{"properties":{}}'),
        (b"connector-gone", None),
        (b"target-state-gone", None),
        (b"commit-msc", b'{"tasks":0}'),
    ]


def test_log_levels_are_returned_once_and_not_older_ones(
    settings: ConnectionSettings, topic: str, configs: ConfigTopic
) -> None:
    configs.put_log_level("org.w", "ERROR")
    configs.put_log_level("org.x", "DEBUG")
    with closing(ConfigTopic(settings, topic)) as late:
        late.read_to_end(WAIT_S)
        assert configs.poll(LONG_S) == [StoredLevel("org.w", "ERROR"), StoredLevel("org.x", "DEBUG")]
        assert configs.poll(0) == []
        assert late.poll(0) == []
        configs.put_log_level("org.x", "INFO")
        second = StoredLevel("org.x", "INFO")
        assert late.poll(LONG_S) == [second]
        assert configs.poll(LONG_S) == [second]


def test_a_poll_returns_when_another_thread_has_read(configs: ConfigTopic) -> None:
    """Otherwise a connector would start one poll interval late."""
    configs.put_connector("c", {})
    started = time.monotonic()
    assert configs.poll(LONG_S) == []
    assert time.monotonic() - started < SOON_S * patience()
    assert configs.poll(0) == []


def test_read_to_end_succeeds_beside_constant_polls(configs: ConfigTopic) -> None:
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            configs.poll(0.2)

    poller = threading.Thread(target=poll)
    poller.start()
    try:
        for _ in range(20):
            configs.read_to_end(LONG_S)
    finally:
        ended.set()
        poller.join()


def test_threads_write_while_another_polls(configs: ConfigTopic) -> None:
    """Each writer sees its own record at once, and the poller misses none."""
    ended = threading.Event()
    seen: list[int] = []
    levels: list[StoredLevel] = []

    def poll() -> None:
        while not ended.is_set():
            levels.extend(configs.poll(LONG_S))
            seen.append(len(configs.configs.connectors))

    def write(writer: int) -> None:
        for number in range(5):
            name = f"c-{writer}-{number}"
            configs.put_connector(name, {"n": name})
            assert configs.configs.connectors[name] == {"n": name}
            configs.put_log_level(name, "INFO")
            configs.put_task_configs(name, [{"t": name}])
            assert configs.configs.task_configs[name] == ({"t": name},)

    poller = threading.Thread(target=poll)
    poller.start()
    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write, writer) for writer in range(6)]:
            done.result(LONG_S)
    ended.set()
    configs.put_log_level("last", "INFO")
    poller.join(SOON_S * patience())
    assert not poller.is_alive(), "it was not woken"
    levels.extend(configs.poll(0))
    assert seen == sorted(seen)
    assert len(configs.configs.connectors) == 30
    assert len(levels) == 31
    assert levels[-1] == StoredLevel("last", "INFO")


def test_malformed_records_are_skipped(
    target_cluster: LocalCluster, topic: str, configs: ConfigTopic, caplog: pytest.LogCaptureFixture
) -> None:
    good = connector_record("c", {"a": "b"})
    append(target_cluster, topic, [(b"connector-c", b"5"), (good.key, good.value), (b"what", b"ever")])
    configs.read_to_end(LONG_S)
    assert configs.configs.connectors == {"c": {"a": "b"}}
    assert [record.message for record in caplog.records] == [
        f"{topic}: offset 0 is ignored: connector-c: it is no object",
        f"{topic}: offset 2 is ignored: what: it is none of a config topic's keys",
    ]


def test_a_write_is_retried_after_a_lost_response(target_cluster: LocalCluster, topic: str) -> None:
    with proxied((HOST, target_cluster.brokers[0].port)) as [proxy]:
        near = ConnectionSettings((proxy.address,), request_timeout_s=0.5, connect_timeout_s=0.5)
        taken: list[LogRecord] = []
        with closing(ReadBackLog(near, topic, taken.extend)) as log:
            proxy.disrupt_next(Api.FETCH, Moment.ANSWER_DUE, Disruption.SILENCE)
            log.write([connector_record("c", {})], WAIT_S)
            assert [record.key for record in taken] == [b"connector-c"]
            proxy.silence()
            started = time.monotonic()
            with pytest.raises(KafkaError) as silent:
                log.write([connector_record("d", {})], 1.0)
            assert silent.value.retriable
            assert time.monotonic() - started < SOON_S * patience()
            proxy.restore()
            log.write([connector_record("e", {})], WAIT_S)
            assert taken[-1].key == b"connector-e"


def test_write_errors_have_javas_message() -> None:
    port = ReservedPort()
    nobody = ConnectionSettings(((HOST, port.number),), connect_timeout_s=0.5, request_timeout_s=0.5)
    port.release()
    with closing(ConfigTopic(nobody, "t")) as topic:
        failing: list[tuple[Callable[[], None], str]] = [
            (lambda: topic.put_connector("c", {}), "writing connector configuration to"),
            (lambda: topic.remove_connector("c"), "removing connector configuration from"),
            (lambda: topic.put_task_configs("c", [{}]), "writing task configurations to"),
            (lambda: topic.put_task_configs("c", []), "writing root configuration to"),
            (lambda: topic.put_target_state("c", TargetState.PAUSED), "writing target state to"),
            (lambda: topic.put_session_key(KEY), "writing session key to"),
            (lambda: topic.put_log_level("c", "INFO"), "writing logger level to"),
        ]
        for call, said in failing:
            with pytest.raises(KafkaError) as failed:
                call()
            assert str(failed.value).startswith(f"Error {said} Kafka: write to t: ")
            assert f"{HOST}:{port.number}" in str(failed.value)
        with pytest.raises(KafkaError, match=f"^read t: .*{HOST}:{port.number}"):
            topic.read_to_end(1.0)
