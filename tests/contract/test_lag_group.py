"""The group that shows a mirror's lag: an application's offsets are never overwritten."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.lag_groups import LAG_METADATA
from sparkmirror.groups.lag_group_use import used_by_others
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.mirror.lag_group import LagGroup
from sparkmirror.settings.configured import configured_flow
from sparkmirror.storage.progress import PartitionProgress
from tests.memory.server import MemoryServer, serving
from tests.support.connections import connection
from tests.support.progress_records import IDLE

pytestmark = pytest.mark.memory

GROUP = GroupId("billing")
PARTITIONS = [TopicPartition("h51", number) for number in range(2)]
OWN = {partition: Committed(5, LAG_METADATA) for partition in PARTITIONS}


class Bench:
    """A mirror that has copied 100 records of each partition."""

    def __init__(self, source: MemoryServer) -> None:
        self.source = source
        settings = {
            "clusters": "A, B",
            "A.bootstrap.servers": source.bootstrap_servers,
            "B.bootstrap.servers": "b:9092",
            "A->B.enabled": "true",
            "A->B.lag.group.id": GROUP,
        }
        flows = MirrorMakerConfig(Properties(settings), {}).flows()
        (flow,) = (configured_flow(flow) for flow in flows if flow.flow.source == "A")
        assert flow.source is not None
        self.position = 99
        self.lag_group = LagGroup(flow.flow, flow.source, self.reports)

    def reports(self) -> list[PartitionProgress]:
        return [replace(IDLE, source=partition, position=self.position) for partition in PARTITIONS]

    def write(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        with closing(Groups(connection(self.source))) as groups:
            assert groups.write(GROUP, offsets) == {}

    def committed(self) -> Mapping[TopicPartition, Committed]:
        with closing(Groups(connection(self.source))) as groups:
            found = groups.committed([GROUP])[GROUP]
        assert not isinstance(found, KafkaError)
        return found


@pytest.fixture
def bench() -> Iterator[Bench]:
    with serving("A") as source:
        source.call(lambda: source.cluster.create("h51", len(PARTITIONS)))
        made = Bench(source)
        yield made
        made.lag_group._groups.close()


@pytest.mark.parametrize("before", [{}, OWN], ids=["a new group", "the mirror's own"])
def test_the_mirrors_own_group_follows_it(bench: Bench, before: Mapping[TopicPartition, Committed]) -> None:
    if before:
        bench.write(before)
    for position in (99, 149):
        bench.position = position
        bench.lag_group.commit()
        assert bench.committed() == dict.fromkeys(PARTITIONS, Committed(position + 1, LAG_METADATA))


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        (
            {PARTITIONS[0]: Committed(10, "app"), PARTITIONS[1]: Committed(20, "app")},
            "h51-0 at 10, h51-1 at 20",
        ),
        ({PARTITIONS[0]: Committed(10, "")}, "h51-0 at 10"),
        ({**OWN, PARTITIONS[1]: Committed(20, "")}, "h51-1 at 20"),
    ],
)
def test_a_group_with_other_offsets_is_left_alone(
    bench: Bench, offsets: Mapping[TopicPartition, Committed], said: str
) -> None:
    bench.write(offsets)
    for _ in range(2):
        with pytest.raises(KafkaError) as raised:
            bench.lag_group.commit()
        assert f"group billing on A has offsets that are not the mirror's: {said}; nothing" in str(
            raised.value
        )
        assert "choose a lag.group.id that no application uses" in str(raised.value)
        assert bench.committed() == offsets


def test_an_application_that_begins_later_keeps_its_offsets(bench: Bench) -> None:
    bench.lag_group.commit()
    application = {PARTITIONS[0]: Committed(30, "app")}
    bench.write(application)
    bench.position = 149
    with pytest.raises(KafkaError, match="h51-0 at 30"):
        bench.lag_group.commit()
    assert bench.committed()[PARTITIONS[0]] == application[PARTITIONS[0]]


def test_a_group_with_members_is_named(bench: Bench) -> None:
    with closing(Groups(connection(bench.source))) as groups:
        assert used_by_others(groups, GROUP) is None
        bench.source.call(lambda: setattr(bench.source.cluster.groups.group(GROUP), "state", "Stable"))
        assert used_by_others(groups, GROUP) == "has members"
    with pytest.raises(KafkaError, match="group billing on A has members; nothing is committed for it"):
        bench.lag_group.commit()
    assert bench.committed() == {}
