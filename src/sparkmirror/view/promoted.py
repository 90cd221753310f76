"""Tells of promoted topics as partitions that have no lag, not as their tasks reported last. Pure."""

from collections.abc import Iterator

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import PartitionLook, SourceLook
from sparkmirror.metrics.partition_table import PartitionTable, table_of
from sparkmirror.storage.promotions import Promotions


def copied(look: SourceLook) -> PartitionTable:
    """The partitions of topics that are not promoted."""
    table = table_of(look.partitions or ())
    if not look.promoted:
        return table
    rows = [row for row, source in enumerate(table.sources) if source.topic not in look.promoted]
    return table if len(rows) == len(table) else table.of(rows)


def promoted(look: SourceLook) -> PartitionTable:
    return table_of(list(_looks(look.promoted)))


def _looks(promotions: Promotions) -> Iterator[PartitionLook]:
    """Yield a look at each partition; until the partings are known, at the first one of the topic."""
    for topic, promotion in promotions.items():
        for number in promotion.partings or (0,):
            source = TopicPartition(topic, number)
            yield PartitionLook(source, None, is_silent=False, lag_s=0.0, promotion=promotion)
