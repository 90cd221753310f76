from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.metrics.checkpoint_meter import CheckpointMeter
from sparkmirror.metrics.readings import GroupTranslation
from sparkmirror.offsets.wire_records import Checkpoint

OF = (Flow(Alias("source"), Alias("target")), ConnectorName("MirrorCheckpointConnector"))
ORDERS = TopicPartition("source.orders", 0)


def checkpoint(group: str) -> Checkpoint:
    return Checkpoint(GroupId(group), ORDERS, 10, 10)


def test_checkpoints_are_counted_and_have_the_latency_of_their_round() -> None:
    meter = CheckpointMeter()
    meter.take([checkpoint("a"), checkpoint("b")], 5.0, 1000.0)
    meter.take([checkpoint("a")], 15.0, 1001.0)
    reading = meter.reading(OF, [GroupId("a"), GroupId("b")], 1002.0)
    assert (reading.checkpoints, reading.last_at, reading.groups, reading.left_out) == (3, 1001.0, 2, 0)
    assert reading.latencies[GroupId("a"), ORDERS] == (15.0, 5.0, 15.0, 10.0)
    assert reading.tasks == {0: "running"}


def test_before_groups_are_listed_their_number_is_unknown() -> None:
    reading = CheckpointMeter().reading(OF, None, 0.0)
    assert (reading.groups, reading.last_at, reading.tasks) == (None, None, {})


def test_series_of_groups_that_are_no_longer_followed_are_removed() -> None:
    meter = CheckpointMeter()
    meter.take([checkpoint("a"), checkpoint("b")], 5.0, 1000.0)
    assert [group for group, _ in meter.reading(OF, [GroupId("b")], 1000.0).latencies] == ["b"]


def test_groups_beyond_the_maximum_are_only_counted() -> None:
    meter = CheckpointMeter(series_max=2)
    meter.take([checkpoint(group) for group in "abcd"], 5.0, 1000.0)
    meter.take([checkpoint(group) for group in "abcd"], 5.0, 1001.0)
    reading = meter.reading(OF, [GroupId(group) for group in "abcd"], 1001.0)
    assert (len(reading.latencies), reading.left_out, reading.checkpoints) == (2, 2, 8)


def test_a_group_whose_offsets_can_not_be_read_keeps_its_last_translation() -> None:
    meter = CheckpointMeter(series_max=2)
    first, later = GroupTranslation(1000.0, 1, 0, 0, 0), GroupTranslation(1060.0, 0, 1, 0, 5)
    meter.translated({GroupId("a"): first, GroupId("b"): first}, 1000.0)
    meter.translated({GroupId("a"): later, GroupId("c"): later}, 1060.0)
    reading = meter.reading(OF, [GroupId("a"), GroupId("b"), GroupId("c")], 1060.0)
    assert reading.translated_at == 1060.0
    assert reading.translations == {"a": later, "b": first}  # and no more than the maximum
    assert meter.reading(OF, [GroupId("b")], 1060.0).translations == {"b": first}


def test_groups_that_the_target_refuses_are_those_of_the_last_round() -> None:
    meter = CheckpointMeter()
    assert meter.reading(OF, [], 1000.0).not_committed == 0
    meter.refused(2)
    meter.refused(1)
    assert meter.reading(OF, [], 1000.0).not_committed == 1
