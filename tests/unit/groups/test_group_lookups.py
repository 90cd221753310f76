"""The offsets that are looked up in an interval, by a resolver that looks up a fixed number of them."""

import logging
from collections.abc import Iterable
from typing import cast

import pytest

from sparkmirror.config.connector_options import CHECKPOINT_CONNECTOR
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.groups.group_lookups import GroupLookups
from sparkmirror.groups.offset_resolver import Budget, OffsetResolver, Round, Wanted
from sparkmirror.kafka.groups.consumer_groups import Committed
from sparkmirror.metrics.checkpoint_meter import CheckpointMeter
from sparkmirror.offsets.checkpoints import CheckpointBook
from sparkmirror.offsets.offset_runs import Run
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.parsing import mirror_checkpoint_settings

FLOW = Flow(Alias("us"), Alias("eu"))
PROPERTIES = {
    "name": "checkpoints",
    "connector.class": CHECKPOINT_CONNECTOR,
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "topics": "orders.*",
    "translation.resolve.bytes.max": str(5 << 20),
}
A, B = (TopicPartition(f"orders-{name}", 0) for name in "ab")
LAST = 1000


class Resolver:
    """Looks up the first `each_round` offsets, and finds them."""

    def __init__(self, each_round: int) -> None:
        self.bytes_read = 0
        self.rounds: list[list[tuple[str, int]]] = []
        self._each_round = each_round

    def resolve(self, wanted: Iterable[Wanted], budget: Budget) -> Round:
        assert budget == Budget(5 << 20, 5.0)
        in_turn = list(dict.fromkeys(wanted))
        now, later = in_turn[: self._each_round], in_turn[self._each_round :]
        for each in now:
            each.history.learn([Run(each.upstream, each.upstream, 1)])
            self.bytes_read += 100
        self.rounds.append([(each.source.topic[-1], each.upstream) for each in now])
        return Round(set(now), set(now), set(later))


class Interval:
    """The work of the connector in each interval."""

    def __init__(self, resolver: Resolver, **properties: str) -> None:
        settings = mirror_checkpoint_settings(Properties(PROPERTIES | properties))
        assert settings is not None
        self.meter = CheckpointMeter()
        self.book = CheckpointBook()
        log = flow_log("sparkmirror.tests", FLOW)
        self.lookups = GroupLookups(settings, cast("OffsetResolver", resolver), self.meter, log)
        self.histories = {partition: history(partition) for partition in (A, B)}

    def run(self, offsets: dict[str, dict[TopicPartition, int]]) -> set[str]:
        found = {
            GroupId(group): {partition: Committed(offset, "") for partition, offset in each.items()}
            for group, each in offsets.items()
        }
        self.lookups.note(found, self.book)
        return set(map(str, self.lookups.run(found, self.histories)))

    @property
    def waiting(self) -> int:
        return self.meter.reading((FLOW, ConnectorName("checkpoints")), None, 0.0).lookups_waiting


def history(partition: TopicPartition) -> SyncHistory:
    """Nothing is known between the first record and the last."""
    made = SyncHistory(OffsetSync(partition, 0, 0))
    made.add(OffsetSync(partition, LAST, LAST))
    return made


def test_groups_that_committed_once_are_looked_up_in_order_and_only_once() -> None:
    resolver = Resolver(2)
    interval = Interval(resolver)
    once = {"x": {B: 30, A: 70}, "y": {A: 40}, "z": {A: 0, B: LAST + 1}}
    improved = [interval.run(once) for _ in range(3)]
    assert resolver.rounds == [[("a", 40), ("a", 70)], [("b", 30)], []]
    assert improved == [{"x", "y"}, {"x"}, set()]


def test_a_group_that_moves_does_not_keep_others_waiting() -> None:
    resolver = Resolver(2)
    interval = Interval(resolver)
    still = {f"still-{number}": {B: 10 * number} for number in range(1, 5)}
    for moved in range(1, 6):
        interval.run({"busy": {A: moved}, "busier": {A: 100 + moved}} | still)
    assert resolver.rounds == [
        [("a", 1), ("a", 101)],
        [("b", 10), ("b", 20)],
        [("b", 30), ("b", 40)],
        [("a", 4), ("a", 104)],
        [("a", 5), ("a", 105)],
    ]


def test_a_spent_budget_is_logged_once_and_counted_until_nothing_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    interval = Interval(Resolver(2))
    waiting = []
    once = {f"g{number}": {A: 10 * number} for number in range(1, 6)}
    with caplog.at_level(logging.INFO, "sparkmirror.tests"):
        for _ in range(4):
            interval.run(once)
            waiting.append(interval.waiting)
    assert waiting == [3, 1, 0, 0]
    spent, over = caplog.messages
    assert spent == (
        "3 offsets of groups stay approximate until a later interval: the look-ups of this one ended "
        "after 200 bytes (limits: translation.resolve.bytes.max=5242880 and 5.0 s)"
    )
    assert over == "no offset of a group waits any more to be looked up"


def test_active_looks_up_groups_that_moved_also_while_the_mirror_was_stopped() -> None:
    resolver = Resolver(9)
    interval = Interval(resolver, **{"translation.resolve": "active"})
    interval.book.note(Checkpoint(GroupId("y"), TopicPartition("us.orders-a", 0), 20, 1))
    interval.run({"x": {A: 10}, "y": {A: 25}})
    interval.run({"x": {A: 15}, "y": {A: 25}})
    assert resolver.rounds == [[("a", 25)], [("a", 15)]]


def test_active_looks_up_an_offset_that_was_ahead_of_all_syncs() -> None:
    resolver = Resolver(9)
    interval = Interval(resolver, **{"translation.resolve": "active"})
    interval.run({"x": {A: 10}})
    interval.run({"x": {A: LAST + 50}})
    interval.histories[A].add(OffsetSync(A, LAST + 90, LAST + 80))
    interval.run({"x": {A: LAST + 50}})
    assert resolver.rounds == [[], [], [("a", LAST + 50)]]


def test_groups_that_are_no_longer_followed_are_not_looked_up() -> None:
    resolver = Resolver(9)
    interval = Interval(resolver)
    interval.lookups.note({GroupId("x"): {A: Committed(10, "")}}, interval.book)
    interval.lookups.keep_only([GroupId("y")])
    interval.run({"y": {A: 30}})
    assert resolver.rounds == [[("a", 30)]]
