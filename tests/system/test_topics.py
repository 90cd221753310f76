"""Selection of topics, their remote names, partitions and configs."""

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import (
    append,
    config,
    configure,
    create_topic,
    grow,
    keyed,
    numbered,
    replication_factor,
    topics,
)
from tests.support.progress import await_caught_up
from tests.support.waiting import await_value
from tests.system import dual_run
from tests.system.dual_run import Mirrored, values

FIND_TIMEOUT_S = 30


def await_topic(cluster: LocalCluster, topic: str, partitions: int) -> None:
    await_value(
        lambda: topics(cluster).get(topic) == partitions,
        FIND_TIMEOUT_S,
        lambda: f"{topic} does not get {partitions} partitions: {topics(cluster).get(topic)}",
    )


def test_topics_are_created_as_at_the_source(mirrored: Mirrored) -> None:
    source, target = (topics(side) for side in mirrored.sides)
    assert {t: target.get(f"A.{t}") for t in dual_run.MIXED} == {t: source[t] for t in dual_run.MIXED}
    assert replication_factor(mirrored.sides.target, "A.mixed.codecs") == 1


def test_configs_are_created_as_at_the_source(mirrored: Mirrored) -> None:
    there = config(mirrored.sides.source, "mixed.compacted")
    here = config(mirrored.sides.target, "A.mixed.compacted")
    for name in ("cleanup.policy", "segment.ms", "min.cleanable.dirty.ratio"):
        assert here[name] == there[name], name
    assert here["cleanup.policy"] == "compact"


def test_excluded_configs_are_not_copied(mirrored: Mirrored) -> None:
    assert config(mirrored.sides.source, "mixed.log-append-time")["message.timestamp.type"] == "LogAppendTime"
    assert config(mirrored.sides.target, "A.mixed.log-append-time")["message.timestamp.type"] == "CreateTime"


def test_new_topic_is_mirrored_and_an_excluded_one_is_not(mirrored: Mirrored) -> None:
    source, target = mirrored.sides
    for topic in ("new.secret.orders", "new.orders", "other.orders"):
        create_topic(source.bootstrap_servers, topic, partitions=2, config={"retention.ms": "86400001"})
        append(source, topic, numbered(5), partition=1)
    await_topic(target, "A.new.orders", 2)
    await_caught_up(source, target, "A", ["new.orders"])
    assert keyed(target, "A.new.orders") == numbered(5)
    assert config(target, "A.new.orders")["retention.ms"] == "86400001"
    assert {"A.new.secret.orders", "A.other.orders"}.isdisjoint(topics(target))


def test_added_partitions_follow_the_source(mirrored: Mirrored) -> None:
    source, target = mirrored.sides
    create_topic(source.bootstrap_servers, "new.growing", partitions=1)
    append(source, "new.growing", numbered(3))
    await_topic(target, "A.new.growing", 1)
    grow(source, "new.growing", 3)
    await_topic(target, "A.new.growing", 3)
    append(source, "new.growing", numbered(4), partition=2)
    await_caught_up(source, target, "A", ["new.growing"])
    assert keyed(target, "A.new.growing") == [*numbered(3), *numbered(4)]


def test_changed_configs_follow_the_source(mirrored: Mirrored) -> None:
    source, target = mirrored.sides
    configure(source, "mixed.timestamps", {"retention.ms": "987654321"})
    await_value(
        lambda: config(target, "A.mixed.timestamps")["retention.ms"] == "987654321",
        FIND_TIMEOUT_S,
        lambda: "retention.ms does not follow",
    )


def test_identity_policy_keeps_names(mirrored: Mirrored) -> None:
    assert topics(mirrored.sides.target)[dual_run.LATE] == 1


def test_custom_separator_is_used(mirrored: Mirrored) -> None:
    names = topics(mirrored.sides.target)
    assert {"rc_mixed.transactions", "rc_mixed.codecs", "mm2-offset-syncs_rc_internal"} <= set(names)
    # Names of Connect's internal topics do not contain it.
    assert {"mm2-offsets.rc.internal", "mm2-progress.rc.internal"} <= set(names)


def test_remote_topics_are_not_mirrored_back(mirrored: Mirrored) -> None:
    source, target = mirrored.sides
    assert values(target, "A.shop.orders") == [b"source", b"source again"]
    assert values(source, "B.shop.orders") == [b"target"]
    for side in mirrored.sides:
        assert {"A.B.shop.orders", "B.A.shop.orders"}.isdisjoint(topics(side))


def test_no_key_of_the_file_is_reported_as_unknown(mirrored: Mirrored) -> None:
    assert "nothing reads" not in mirrored.mirror.log_text()
