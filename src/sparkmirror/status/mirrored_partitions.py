"""Lists the partitions that a flow mirrors, or will mirror, from what exists on both clusters."""

from collections.abc import Callable
from contextlib import closing

from sparkmirror.copy.copy_plan import CopyPartition
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.settings.topic_selection import Selection
from sparkmirror.setup.topic_plan import SourceTopic, copy_partitions
from sparkmirror.status.flow_access import FlowAccess


def mirrored_partitions(access: FlowAccess, is_wanted: Callable[[str], object]) -> list[CopyPartition]:
    """List the partitions of topics whose names on the source are wanted. Raises KafkaError."""
    with closing(Admin(access.source_admin)) as at_source, closing(Admin(access.target_admin)) as at_target:
        source = {topic: SourceTopic(count) for topic, count in at_source.partition_counts().items()}
        selected = Selection(access.source, access.topics_with_positions).select(source)
        pairs = [pair for pair in selected.pairs if is_wanted(pair[0])]
        plan = copy_partitions(access.source, source, at_target.partition_counts(), pairs)
    return [*plan.ready, *plan.waiting]
