from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.ids import Alias, Flow, GroupId, TopicPartition
from sparkmirror.offsets.checkpoints import CheckpointBook, is_refuted, offsets_to_write, target_topic
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import Checkpoint, OffsetSync
from sparkmirror.policies.replication import DefaultReplicationPolicy, IdentityReplicationPolicy

FLOW = Flow(Alias("us"), Alias("eu"))
BILLING = GroupId("billing")
FIRST, SECOND = TopicPartition("us.orders", 0), TopicPartition("us.orders", 1)


FAR = SyncHistory(OffsetSync(TopicPartition("orders", 0), 1000, 1000))


def checkpoint(upstream: int, downstream: int, partition: TopicPartition = FIRST) -> Checkpoint:
    return Checkpoint(BILLING, partition, upstream, downstream, "")


def take(book: CheckpointBook, candidate: Checkpoint) -> bool:
    if not book.is_news(candidate, FAR):
        return False
    book.note(candidate)
    return True


def test_target_topic_is_the_remote_topic_or_the_original_of_the_target() -> None:
    default = DefaultReplicationPolicy()
    assert target_topic(default, FLOW, "orders") == "us.orders"
    assert target_topic(default, FLOW, "eu.orders") == "orders"
    assert target_topic(default, FLOW, "asia.orders") == "us.asia.orders"
    assert target_topic(IdentityReplicationPolicy(source_alias="us"), FLOW, "orders") == "orders"


def test_only_changed_offsets_become_checkpoints() -> None:
    book = CheckpointBook()
    assert take(book, checkpoint(10, 5))
    assert not take(book, checkpoint(10, 5))
    assert not take(book, checkpoint(11, 5))  # the same downstream offset
    assert not take(book, checkpoint(12, 4))  # translated by fewer offset syncs
    assert take(book, checkpoint(12, 6))
    assert take(book, checkpoint(7, 3))  # the group went back
    assert take(book, checkpoint(7, 3, SECOND))
    assert book.of_group(BILLING) == {FIRST: checkpoint(7, 3), SECOND: checkpoint(7, 3, SECOND)}


def test_restart_continues_from_the_stored_checkpoints() -> None:
    book = CheckpointBook([checkpoint(10, 5), checkpoint(20, 15)])
    assert not take(book, checkpoint(20, 14))
    assert take(book, checkpoint(20, 16))


def test_only_offsets_ahead_of_the_group_are_written() -> None:
    checkpoints = {FIRST: checkpoint(10, 5), SECOND: checkpoint(10, 8, SECOND)}
    assert offsets_to_write(checkpoints, {}) == checkpoints
    assert offsets_to_write(checkpoints, {FIRST: -1, SECOND: 8}) == {FIRST: checkpoints[FIRST]}
    assert offsets_to_write(checkpoints, {FIRST: 6, SECOND: 9}) == {}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=60))
def test_checkpoints_go_back_only_when_the_group_goes_back(offsets: list[tuple[int, int]]) -> None:
    book, last = CheckpointBook(), None
    for upstream, downstream in offsets:
        if not take(book, checkpoint(upstream, downstream)):
            continue
        if last is not None and downstream < last[1]:
            assert upstream < last[0]
        last = (upstream, downstream)


def test_group_is_moved_back_when_the_target_lost_records_before_its_offset() -> None:
    """Otherwise the group would skip the first records of the new log."""
    book = CheckpointBook([checkpoint(100, 90)])
    recreated = SyncHistory(OffsetSync(TopicPartition("orders", 0), 119, 9), 10)
    assert is_refuted(checkpoint(100, 90), recreated)
    assert book.is_news(checkpoint(115, 5), recreated)
    assert not is_refuted(checkpoint(115, 5), recreated)
    assert not is_refuted(checkpoint(100, 90), None)
    before = SyncHistory(OffsetSync(TopicPartition("orders", 0), 119, 109), 10)
    assert not is_refuted(checkpoint(100, 90), before)
    assert not book.is_news(checkpoint(101, 80), before)
