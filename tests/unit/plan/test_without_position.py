"""Partitions that will be copied are asked whether the target holds records already."""

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings, ConsumerSettings
from sparkmirror.domain.errors import AuthorizationError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.partition_offsets import LATEST
from sparkmirror.plan import without_position
from sparkmirror.plan.without_position import filled_topics
from sparkmirror.policies.replication import DefaultReplicationPolicy
from sparkmirror.settings.configured import ConfiguredSource

CLIENT = ConnectionSettings((("localhost", 9092),))
CONSUMER = ConsumerSettings(CLIENT)
CONNECTOR = cast(
    "ConfiguredSource",
    SimpleNamespace(
        consumer_of=lambda _: CONSUMER,
        target_admin=CLIENT,
        settings=SimpleNamespace(policy=DefaultReplicationPolicy("")),
    ),
)


def filled(
    monkeypatch: pytest.MonkeyPatch, ends: Mapping[int, int | SparkmirrorError], source: int, target: int
) -> set[str]:
    """The answer where `ends` are the ends of the target's partitions; the others are empty."""

    def list_offsets(
        settings: ConsumerSettings, partitions: Collection[TopicPartition], which: int
    ) -> Mapping[TopicPartition, int | SparkmirrorError]:
        return {at: ends.get(at.partition, 0) if which == LATEST else 0 for at in partitions}

    monkeypatch.setattr(without_position, "settled_offsets", list_offsets)
    topics = ("a", "heartbeats")
    counts = dict.fromkeys(topics, source), dict.fromkeys(topics, target)
    found = filled_topics(CONNECTOR, [(topic, topic) for topic in topics], *counts)
    assert "heartbeats" not in found, "what the target's own connectors emit"
    return found


@pytest.mark.parametrize(
    ("source", "target", "holding", "is_filled"),
    [(5, 12, 5, False), (5, 12, 4, True), (5, 12, 11, False), (5, 1, 0, True), (2, 2, 1, True)],
)
def test_partitions_that_the_source_lacks_hold_records_of_others(
    monkeypatch: pytest.MonkeyPatch, source: int, target: int, holding: int, *, is_filled: bool
) -> None:
    assert bool(filled(monkeypatch, {holding: 7}, source, target)) is is_filled


def test_partitions_that_may_not_be_read_hold_nothing_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled(monkeypatch, {0: AuthorizationError("no")}, 1, 1) == set()
