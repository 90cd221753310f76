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


def take(book: CheckpointBook, news: Checkpoint) -> bool:
    if not book.is_news(news, FAR):
        return False
    book.note(news)
    return True


def test_topics_have_the_targets_names_and_those_from_there_their_first() -> None:
    default = DefaultReplicationPolicy()
    assert target_topic(default, FLOW, "orders") == "us.orders"
    assert target_topic(default, FLOW, "eu.orders") == "orders"
    assert target_topic(default, FLOW, "asia.orders") == "us.asia.orders"
    assert target_topic(IdentityReplicationPolicy(source_alias="us"), FLOW, "orders") == "orders"


def test_only_changed_offsets_become_checkpoints() -> None:
    book = CheckpointBook()
    assert take(book, checkpoint(10, 5))
    assert not take(book, checkpoint(10, 5))
    assert not take(book, checkpoint(11, 5))  # nothing new on the target
    assert not take(book, checkpoint(12, 4))  # syncs between were forgotten
    assert take(book, checkpoint(12, 6))
    assert take(book, checkpoint(7, 3))  # the group went back
    assert take(book, checkpoint(7, 3, SECOND))
    assert book.of_group(BILLING) == {FIRST: checkpoint(7, 3), SECOND: checkpoint(7, 3, SECOND)}


def test_a_later_life_goes_on_from_the_checkpoints_of_the_one_before() -> None:
    book = CheckpointBook([checkpoint(10, 5), checkpoint(20, 15)])
    assert not take(book, checkpoint(20, 14))
    assert take(book, checkpoint(20, 16))


def test_a_group_gets_what_is_ahead_of_it() -> None:
    checkpoints = {FIRST: checkpoint(10, 5), SECOND: checkpoint(10, 8, SECOND)}
    assert offsets_to_write(checkpoints, {}) == checkpoints
    assert offsets_to_write(checkpoints, {FIRST: -1, SECOND: 8}) == {FIRST: checkpoints[FIRST]}
    assert offsets_to_write(checkpoints, {FIRST: 6, SECOND: 9}) == {}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=60))
def test_checkpoints_only_go_back_with_their_group(offsets: list[tuple[int, int]]) -> None:
    book, last = CheckpointBook(), None
    for upstream, downstream in offsets:
        if not take(book, checkpoint(upstream, downstream)):
            continue
        if last is not None and downstream < last[1]:
            assert upstream < last[0]
        last = (upstream, downstream)


def test_a_group_goes_back_when_the_target_has_lost_what_it_was_sent_to() -> None:
    """Else it would miss the first records of the new log."""
    book = CheckpointBook([checkpoint(100, 90)])
    anew = SyncHistory(OffsetSync(TopicPartition("orders", 0), 119, 9), 10)
    assert is_refuted(checkpoint(100, 90), anew)
    assert book.is_news(checkpoint(115, 5), anew)
    assert not is_refuted(checkpoint(115, 5), anew)
    assert not is_refuted(checkpoint(100, 90), None)
    before = SyncHistory(OffsetSync(TopicPartition("orders", 0), 119, 109), 10)
    assert not is_refuted(checkpoint(100, 90), before)
    assert not book.is_news(checkpoint(101, 80), before)
