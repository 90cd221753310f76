"""Lists the partitions that a flow mirrors, or will mirror, from what exists on both clusters."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NamedTuple

from sparkmirror.domain.troubles import Trouble
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.topic_selection import Selection
from sparkmirror.setup.topic_plan import CopyPlan, SourceTopic, copy_partitions
from sparkmirror.setup.topic_troubles import blocked
from sparkmirror.status.flow_access import FlowAccess


class Listed(NamedTuple):
    """The selected partitions that are on the target, those that wait, and topics that are blocked."""

    plan: CopyPlan
    blocked: Sequence[Trouble]


def mirrored_partitions(access: FlowAccess, is_wanted: Callable[[str], object]) -> list[CopyPartition]:
    """List the partitions of topics whose names on the source are wanted. Raises KafkaError."""
    plan = list_selected(access, is_wanted).plan
    return [*plan.ready, *plan.waiting]


def list_selected(access: FlowAccess, is_wanted: Callable[[str], object]) -> Listed:
    """Raises KafkaError."""
    with closing(Admin(access.source_admin)) as at_source, closing(Admin(access.target_admin)) as at_target:
        source = {topic: SourceTopic(count) for topic, count in at_source.partition_counts().items()}
        selected = Selection(access.source, access.topics_with_positions).select(source)
        pairs = [pair for pair in selected.pairs if is_wanted(pair[0])]
        plan = copy_partitions(access.source, source, at_target.partition_counts(), pairs)
    return Listed(plan, [it for it in blocked(selected, source) if is_wanted(it.what)])
