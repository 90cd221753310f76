from dataclasses import replace

import pytest

from sparkmirror.domain.explanation import PartitionExplanation
from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.groups.group_explanation import (
    CommittedPartition,
    GroupFacts,
    GroupThere,
    Translation,
    explain,
)
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync

FLOW = Flow(Alias("us"), Alias("eu"))
BILLING = GroupId("billing")
HERE, THERE = TopicPartition("orders", 0), TopicPartition("us.orders", 0)


def history() -> SyncHistory:
    made = SyncHistory(OffsetSync(HERE, 119, 219), 20)
    made.add(OffsetSync(HERE, 180, 260), 11)
    return made


def facts(committed: int, **partition: object) -> GroupFacts:
    partition_facts = CommittedPartition(HERE, THERE, history(), None, source_end=200, target_end=280)
    return GroupFacts(
        FLOW,
        BILLING,
        GroupThere("classic", committed={HERE: committed}),
        GroupThere(),
        [replace(partition_facts, **partition)],  # type: ignore[arg-type]  # its fields
    )


def only(facts_of_group: GroupFacts) -> PartitionExplanation:
    (partition,) = explain(facts_of_group).partitions
    return partition


@pytest.mark.parametrize(
    ("committed", "translation", "why", "next_write"),
    [
        (105, Translation.EXACT, "translated exactly", 205),
        (181, Translation.EXACT, "translated exactly", 261),
        (130, Translation.APPROXIMATE, "between two offset syncs: at most 30 records are read again", 220),
        (
            190,
            Translation.APPROXIMATE,
            "ahead of the newest offset sync, 180: the next one may translate it",
            261,
        ),
        (
            99,
            Translation.OLDER,
            "before 100, the first offset that a sync covers: consumers begin by auto.offset.reset",
            None,
        ),
    ],
)
def test_how_an_offset_is_translated(
    committed: int, translation: Translation, why: str, next_write: int | None
) -> None:
    found = only(facts(committed))
    assert (found.details["translation"], found.why, found.numbers["next_sync_writes"]) == (
        translation,
        why,
        next_write,
    )
    assert (found.numbers["source_offset"], found.numbers["source_lag"]) == (committed, 200 - committed)
    assert explain(facts(committed)).is_fine is (translation is not Translation.OLDER)


@pytest.mark.parametrize(
    ("partition", "translation", "why"),
    [
        ({"history": None}, Translation.NO_SYNC, "no offset sync: nothing of the partition was mirrored yet"),
        (
            {"left_out": "topics.exclude (or.*)"},
            Translation.FILTERED,
            "topics.exclude (or.*) leaves the topic out",
        ),
        (
            {"error": "orders-0: TOPIC_AUTHORIZATION_FAILED"},
            Translation.UNREADABLE,
            "orders-0: TOPIC_AUTHORIZATION_FAILED",
        ),
        (
            {"refusal": "write the offsets of group billing for us.orders: TOPIC_AUTHORIZATION_FAILED"},
            Translation.UNREADABLE,
            "write the offsets of group billing for us.orders: TOPIC_AUTHORIZATION_FAILED",
        ),
    ],
)
def test_what_keeps_a_partition(partition: dict[str, object], translation: Translation, why: str) -> None:
    facts_of_group = facts(105, **partition)
    found = only(facts_of_group)
    assert (found.details["translation"], found.why) == (translation, why)
    assert not explain(facts_of_group).is_fine


@pytest.mark.parametrize(
    ("changes", "obstacle"),
    [
        ({"source": GroupThere()}, "us knows no such group, or the principal may not DESCRIBE it"),
        (
            {"source": GroupThere("share", is_consumer_group=False)},
            "is a share group on us: such groups are left alone",
        ),
        ({"source": GroupThere("classic")}, "has committed no offset on us"),
        ({"source": GroupThere(error="GROUP_AUTHORIZATION_FAILED")}, "GROUP_AUTHORIZATION_FAILED"),
        ({"refused_by": "groups"}, "filtered: groups leaves the group out"),
        ({"off_because": "enabled=false"}, "the flow emits no checkpoints: enabled=false"),
        (
            {"target": GroupThere("streams", is_consumer_group=False)},
            "is a streams group on eu: such groups are left alone",
        ),
        (
            {
                "target": GroupThere(
                    "consumer", is_active=True, members=("app-1 at 10.0.0.1", "app-2 at 10.0.0.2")
                )
            },
            "active on eu, which takes offsets from its members only: app-1 at 10.0.0.1, app-2 at 10.0.0.2",
        ),
        ({"target": GroupThere(error="GROUP_AUTHORIZATION_FAILED")}, "GROUP_AUTHORIZATION_FAILED"),
        ({"target": GroupThere(refusal="needs READ on the group")}, "needs READ on the group"),
    ],
)
def test_what_keeps_a_group(changes: dict[str, object], obstacle: str) -> None:
    facts_of_group = facts(105)
    if "source" in changes:
        facts_of_group = replace(facts_of_group, partitions=())
    found = explain(replace(facts_of_group, **changes))  # type: ignore[arg-type]  # its fields
    assert list(found.obstacles) == [obstacle]
    assert not found.is_fine
    assert all(partition.numbers["next_sync_writes"] is None for partition in found.partitions)


def test_without_group_offset_sync_nothing_is_written_there() -> None:
    found = explain(replace(facts(105), syncs_offsets=False))
    assert found.obstacles == [
        "sync.group.offsets.enabled is false: checkpoints are written, offsets are not"
    ]
    assert not found.is_fine
    assert found.partitions[0].numbers["next_sync_writes"] is None


def test_an_idle_group_is_never_set_back() -> None:
    ahead = replace(facts(105), target=GroupThere("classic", committed={THERE: 230}))
    found = only(ahead)
    assert (
        found.numbers["target_offset"],
        found.numbers["target_lag"],
        found.numbers["next_sync_writes"],
    ) == (230, 50, None)
    assert found.why == "translated exactly; ahead of that on eu, and never set back"
    there = replace(ahead, target=GroupThere("classic", committed={THERE: 205}))
    assert (only(there).numbers["next_sync_writes"], only(there).why) == (None, "translated exactly")


def test_the_last_checkpoint_counts_where_it_is_ahead() -> None:
    """Syncs between were compacted away since."""
    found = only(facts(130, checkpoint=Checkpoint(BILLING, THERE, 129, 225)))
    assert (found.numbers["checkpoint_offset"], found.numbers["next_sync_writes"]) == (225, 225)


def test_a_checkpoint_of_a_log_that_is_lost_is_not_written() -> None:
    found = only(facts(105, checkpoint=Checkpoint(BILLING, THERE, 100, 5000)))
    assert found.numbers["next_sync_writes"] == 205
    assert found.why == (
        "translated exactly; the last checkpoint, 5000, is about a log that the target has lost"
    )


CHECKPOINT = Checkpoint(BILLING, THERE, 105, 205)


@pytest.mark.parametrize(
    ("refreshes", "checkpoint", "is_fine", "next_write"),
    [(True, None, True, 205), (False, CHECKPOINT, True, 205), (False, None, False, None)],
)
def test_without_a_refresh_a_group_that_came_later_gets_nothing(
    checkpoint: Checkpoint | None, next_write: int | None, *, refreshes: bool, is_fine: bool
) -> None:
    found = explain(replace(facts(105, checkpoint=checkpoint), refreshes=refreshes))
    (partition,) = found.partitions
    assert (found.is_fine, partition.is_fine, partition.numbers["next_sync_writes"]) == (
        is_fine,
        is_fine,
        next_write,
    )
    assert ("refresh.groups.enabled=false" in " ".join(found.obstacles)) is not is_fine


def test_what_the_target_refuses_is_an_obstacle_and_nothing_is_announced() -> None:
    cause = Cause(TroubleWord.NOT_COMMITTED, Subject.GROUP, "INVALID_GROUP_ID for {name}", "leave it out")
    found = explain(replace(facts(105), troubles=[Trouble(cause, "billing")]))
    assert found.obstacles == ["not committed: INVALID_GROUP_ID for billing; leave it out"]
    assert not found.is_fine
    assert {it.numbers["next_sync_writes"] for it in found.partitions} == {None}
