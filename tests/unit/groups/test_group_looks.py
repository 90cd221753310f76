from typing import Final

from sparkmirror.config.connector_options import CHECKPOINT_CONNECTOR
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import AuthorizationError, RetriableError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.groups.group_looks import GroupLooks
from sparkmirror.kafka.groups.consumer_groups import Committed, Offsets
from sparkmirror.metrics.looks import GroupsLook
from sparkmirror.offsets.checkpoints import CheckpointBook
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from sparkmirror.settings.parsing import mirror_checkpoint_settings

GROUP, OTHER = GroupId("billing"), GroupId("shipping")
ORDERS, NEW, FOREIGN = (TopicPartition(topic, 0) for topic in ("orders", "orders-new", "clicks"))
THERE: Final = TopicPartition("us.orders", 0)
OF: Final = GroupsLook(Flow(Alias("us"), Alias("eu")), ConnectorName("checkpoints"), "checkpoint")


def made(partitions_max: int = 10, **properties: str) -> GroupLooks:
    settings = mirror_checkpoint_settings(
        Properties(
            {
                "name": "checkpoints",
                "connector.class": CHECKPOINT_CONNECTOR,
                "source.cluster.alias": "us",
                "target.cluster.alias": "eu",
                "topics": "orders.*",
                **{key.replace("_", "."): text for key, text in properties.items()},
            }
        )
    )
    assert settings is not None
    return GroupLooks(settings, partitions_max)


def history() -> SyncHistory:
    known = SyncHistory(OffsetSync(ORDERS, 100, 50))
    known.add(OffsetSync(ORDERS, 200, 120))
    return known


def committed(**offsets: int) -> Offsets:
    names = {"orders": ORDERS, "new": NEW, "foreign": FOREIGN}
    return {names[name]: Committed(offset, "") for name, offset in offsets.items()}


def test_before_the_first_interval_nothing_is_known() -> None:
    look = made().look(OF, 5.0)
    assert (look.partitions, look.age_s, look.interval_s) == (None, None, 60.0)


def test_a_look_has_each_offset_and_how_exactly_it_is_translated() -> None:
    looks = made(sync_group_offsets_enabled="true")
    book = CheckpointBook([Checkpoint(GROUP, THERE, 100, 50, "")])
    found = {
        GROUP: committed(orders=200, new=7, foreign=3),
        OTHER: committed(orders=150),
        GroupId("old"): committed(orders=5),
    }
    looks.note_translation(found, {ORDERS: history()}, book, 10.0)
    look = looks.look(OF, 15.0)
    assert look.partitions is not None
    assert (look.age_s, look.target_age_s, look.reads_target) == (5.0, None, True)
    seen = [
        (it.group, it.source, it.translated, it.behind_max, it.why, it.checkpoint) for it in look.partitions
    ]
    assert seen == [
        (GROUP, ORDERS, 120, 0, "exact", 50),
        (GROUP, NEW, None, None, "no sync yet", None),
        (OTHER, ORDERS, 51, 69, "approximate", None),
        ("old", ORDERS, None, None, "older than the first sync", None),
    ]


def test_what_groups_have_on_the_target_is_added() -> None:
    looks = made(sync_group_offsets_enabled="true")
    looks.note_translation({GROUP: committed(orders=200)}, {ORDERS: history()}, CheckpointBook(), 10.0)
    looks.note_target({GROUP: {THERE: 120}}, frozenset({OTHER}), 12.0)
    look = looks.look(OF, 15.0)
    assert [each.written for each in look.partitions or ()] == [120]
    assert (look.active, look.target_age_s) == (frozenset({OTHER}), 3.0)
    assert not made().look(OF, 0.0).reads_target


def test_a_look_has_the_same_list_until_something_is_noted() -> None:
    """Things that a page finds in the list are kept for the next second."""
    looks = made(sync_group_offsets_enabled="true")
    looks.note_translation({GROUP: committed(orders=200)}, {}, CheckpointBook(), 10.0)
    before = looks.look(OF, 10.0).partitions
    for written in (120, 130):
        looks.note_target({GROUP: {THERE: written}}, frozenset(), 12.0)
        first, second = looks.look(OF, 30.0).partitions, looks.look(OF, 31.0).partitions
        assert first is second
        assert first != before
        before = first


def test_a_group_whose_offsets_cannot_be_read_is_not_none() -> None:
    looks = made(sync_group_offsets_enabled="true")
    away, closed = RetriableError("no coordinator on us"), AuthorizationError("no right on eu")
    found = {GROUP: committed(orders=200)}
    looks.note_translation(found, {ORDERS: history()}, CheckpointBook(), 0.0, {OTHER: away})
    assert looks.look(OF, 0.0).errors == {OTHER: "no coordinator on us"}
    looks.note_target({}, frozenset(), 1.0, {GROUP: closed})
    assert looks.look(OF, 1.0).errors == {OTHER: "no coordinator on us", GROUP: "no right on eu"}
    looks.note_translation(found, {ORDERS: history()}, CheckpointBook(), 2.0)
    looks.note_target({}, frozenset(), 2.0)
    assert looks.look(OF, 2.0).errors == {}


def test_no_more_than_a_number_is_kept_and_the_rest_is_counted() -> None:
    looks = made(partitions_max=3)
    found = {GroupId(f"group-{number}"): committed(orders=200) for number in range(8)}
    looks.note_translation(found, {ORDERS: history()}, CheckpointBook(), 0.0)
    look = looks.look(OF, 0.0)
    assert (len(look.partitions or ()), look.left_out) == (3, 5)
