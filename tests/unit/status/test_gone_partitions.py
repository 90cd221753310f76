from sparkmirror.domain.ids import TopicPartition
from sparkmirror.status.flow_lag import PartitionLag
from sparkmirror.status.gone_partitions import DELETED, GonePartitions


def lag(topic: str) -> PartitionLag:
    return PartitionLag(TopicPartition(topic, 0), 10, 10, 0, target_topic=f"a.{topic}")


def test_a_topic_that_is_deleted_is_told_until_the_mirror_has_left_it_out() -> None:
    gone = GonePartitions(600.0)
    assert gone.of([lag("orders"), lag("clicks")], 0.0) == []
    (clicks,) = gone.of([lag("orders")], 5.0)
    assert (clicks.source.topic, clicks.records, clicks.end, clicks.why) == ("clicks", None, None, DELETED)
    assert clicks.target_topic == "a.clicks"
    assert len(gone.of([lag("orders")], 599.0)) == 1
    assert gone.of([lag("orders")], 600.0) == []


def test_a_topic_that_is_there_again_is_not_gone() -> None:
    gone = GonePartitions(600.0)
    gone.of([lag("orders")], 0.0)
    assert gone.of([], 5.0) != []
    assert gone.of([lag("orders")], 10.0) == []
