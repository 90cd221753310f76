import pytest

from sparkmirror.config.known_keys import UnknownKey, unknown_connector_keys, unknown_keys
from sparkmirror.domain.ids import Alias

ALIASES = (Alias("A"), Alias("B"), Alias("us.west"))


@pytest.mark.parametrize(
    "key",
    [
        "clusters",
        "topics",
        "tasks.max",
        "security.protocol",
        "bootstrap.servers",
        "emit.heartbeats.enabled",
        "dedicated.mode.enable.internal.rest",
        "listeners",
        "config.providers.file.class",
        "offset.storage.replication.factor",
        "offset.storage.segment.bytes",
        "task.shutdown.graceful.timeout.ms",
        "worker.sync.timeout.ms",
        "replication.policy.separator",
        "replication.policy.own.setting",
        "key.converter.schemas.enable",
        "spark.master",
        "A.bootstrap.servers",
        "A.consumer.fetch.max.bytes",
        "B.producer.acks",
        "B.admin.request.timeout.ms",
        "B.offset.flush.interval.ms",
        "B.group.id",
        "B.status.storage.retention.ms",
        "B.request.timeout.ms",
        "us.west.consumer.max.poll.records",
        "A->B.enabled",
        "A->B.topics",
        "A->B.use.defaults.from",
        "on.data.loss",
        "A->B.on.data.loss",
        "A->B.exactly.once.support",
        "A->B.transforms.x.type",
        "A->B.producer.override.linger.ms",
        "A->B.producer.client.id",
        "A->B.source.consumer.isolation.level",
        "A->B.target.cluster.bootstrap.servers",
        "us.west->B.topics",
    ],
)
def test_known_keys(key: str) -> None:
    assert unknown_keys([key], ALIASES) == ()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("topics.blacklist", "topics.exclude"),
        ("A->B.topics.blacklist", "A->B.topics.exclude"),
        ("config.properties.blacklist", "config.properties.exclude"),
        ("groups.blacklist", "groups.exclude"),
        ("topics.whitelist", "topics"),
        ("topic", "topics"),
        ("offset.lag.maks", "offset.lag.max"),
        ("A->B.topic.exclude", "A->B.topics.exclude"),
        ("A.bootstrap.server", "A.bootstrap.servers"),
        ("A.consumer.fetch.max.byte", "A.consumer.fetch.max.bytes"),
        ("C.bootstrap.servers", "B.bootstrap.servers"),
        ("A->C.topics", "A->B.topics"),
        ("A.fetch.max.bytes", "A.consumer.fetch.max.bytes"),
        ("A.acks", "A.producer.acks"),
        ("use.defaults.from", "A->B.use.defaults.from"),
        ("transforms.x.type", "A->B.transforms.x.type"),
        ("offset.flush.interval.ms", "A.offset.flush.interval.ms"),
        ("A->B.offset.flush.interval.ms", "B.offset.flush.interval.ms"),
        ("A->B.source.cluster.fetch.max.bytes", "A->B.source.consumer.fetch.max.bytes"),
        ("A.topics", "A->B.topics"),
        ("zzz", None),
        ("A.zzz", None),
    ],
)
def test_an_unknown_key_has_the_nearest_known_key(key: str, meant: str | None) -> None:
    assert [unknown.nearest for unknown in unknown_keys([key], ALIASES)] == [meant]


@pytest.mark.parametrize("key", ["use.incremental.alter.configs", "A->B.add.source.alias.to.metrics"])
def test_removed_settings_are_reported_as_removed(key: str) -> None:
    (unknown,) = unknown_keys([key], ALIASES)
    assert unknown.nearest is None
    assert "removed in Kafka 4.0" in str(unknown)


def test_a_warning_names_key_and_suggestion() -> None:
    assert str(UnknownKey("topik", "topics")) == "topik (did you mean topics?)"
    assert str(UnknownKey("zzz")) == "zzz"


def test_the_keys_of_one_connector() -> None:
    keys = ["topics", "source.cluster.alias", "producer.override.acks", "source.cluster.max.poll.records"]
    assert [str(key) for key in unknown_connector_keys([*keys, "tasks.maks"])] == [
        "source.cluster.max.poll.records (did you mean source.consumer.max.poll.records?)",
        "tasks.maks (did you mean tasks.max?)",
    ]
