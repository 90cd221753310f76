import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_settings import InternalTopic, worker_settings
from sparkmirror.domain.errors import ConfigError

NEEDED = {
    "bootstrap.servers": "b:1",
    "group.id": "A-mm2",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "key.converter": "x",
    "value.converter": "x",
}
COMPACT = ("cleanup.policy", "compact")


def test_defaults() -> None:
    settings = worker_settings(Properties(NEEDED))
    assert settings.group_id == "A-mm2"
    assert settings.config_topic == InternalTopic("c", 1, 3, (COMPACT,))
    assert settings.offset_topic == InternalTopic("o", 25, 3, (COMPACT,))
    assert settings.status_topic == InternalTopic("s", 5, 3, (COMPACT,))
    assert settings.offset_flush_interval_s == 60.0


def test_settings_of_topics() -> None:
    given = {
        "offset.storage.partitions": "-1",
        "offset.storage.replication.factor": "1",
        "offset.storage.segment.bytes": "1000",
        "offset.storage.cleanup.policy": "delete",
        "offset.flush.interval.ms": "1500",
    }
    settings = worker_settings(Properties(NEEDED | given))
    assert settings.offset_topic == InternalTopic("o", -1, 1, (("segment.bytes", "1000"), COMPACT))
    assert settings.offset_flush_interval_s == 1.5


def test_everything_wrong_is_named() -> None:
    wrong = {"offset.storage.partitions": "0", "status.storage.replication.factor": "x"}
    with pytest.raises(ConfigError) as caught:
        worker_settings(Properties({"group.id": "g"} | wrong))
    assert len(str(caught.value).splitlines()) == 7


@pytest.mark.parametrize(
    ("given", "standby"),
    [
        ({}, True),
        ({"spark.master": "local[4]"}, True),
        ({"spark.master": "spark://host:7077"}, False),
        ({"spark.master": "k8s://host", "standby.spark.session": "true"}, True),
        ({"standby.spark.session": "false"}, False),
    ],
)
def test_a_local_spark_is_ready_before_it_is_needed(given: dict[str, str], standby: bool) -> None:
    assert worker_settings(Properties(NEEDED | given)).standby_session is standby


@pytest.mark.parametrize(
    ("given", "session_s", "heartbeat_s"),
    [
        ({}, 8.0, 1.0),
        ({"session.timeout.ms": "6000"}, 6.0, 3.0),
        ({"heartbeat.interval.ms": "9000"}, 10.0, 9.0),
        ({"session.timeout.ms": "45000", "heartbeat.interval.ms": "500"}, 45.0, 0.5),
    ],
)
def test_a_crash_is_noticed_sooner_than_by_java_by_default(
    given: dict[str, str], session_s: float, heartbeat_s: float
) -> None:
    settings = worker_settings(Properties(NEEDED | given))
    assert (settings.session_timeout_s, settings.heartbeat_interval_s) == (session_s, heartbeat_s)
