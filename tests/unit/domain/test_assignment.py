from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.assignment import assign
from sparkmirror.domain.ids import TopicPartition


def test_partitions_are_dealt_round_robin() -> None:
    sizes = {"t2": 2, "t0": 8, "t1": 2}
    partitions = [TopicPartition(topic, p) for topic, size in sizes.items() for p in range(size)]
    dealt = [",".join(map(str, task)) for task in assign(partitions, 3)]
    assert dealt == ["t0-0,t0-3,t0-6,t1-1", "t0-1,t0-4,t0-7,t2-0", "t0-2,t0-5,t1-0,t2-1"]


def test_there_is_no_task_without_a_partition() -> None:
    assert assign([], 3) == ()
    assert assign([TopicPartition("t", 0)], 3) == ((TopicPartition("t", 0),),)


PARTITIONS = st.sets(st.builds(TopicPartition, st.text(max_size=3), st.integers(0, 20)))


@given(PARTITIONS, st.integers(1, 8))
def test_every_partition_is_dealt_once_and_evenly(partitions: set[TopicPartition], tasks: int) -> None:
    dealt = assign(partitions, tasks)
    assert sorted(partition for task in dealt for partition in task) == sorted(partitions)
    assert max(map(len, dealt), default=0) - min(map(len, dealt), default=0) <= 1
    assert dealt == assign(sorted(partitions, reverse=True), tasks)
