"""Makes the rules by which a plan's batches are copied."""

from collections.abc import Mapping
from dataclasses import replace

from sparkmirror.batches.batch_copying import MERGED_BYTES_MAX, CopyRules
from sparkmirror.batches.compression import CODECS
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.ids import TopicPartition


def copy_rules(plan: TaskPlan) -> Mapping[TopicPartition, CopyRules]:
    """The rules of each source partition."""
    compression = plan.producer.compression
    rules = CopyRules(
        codec=None if compression is None else CODECS.index(compression),
        check_crcs=plan.consumer.check_crcs,
        merged_bytes_max=MERGED_BYTES_MAX,
        decompressed_bytes_max=plan.settings.decompressed_bytes_max,
    )
    return {
        partition.source: replace(
            rules,
            target_stamps_append_time=partition.target_stamps_append_time,
            is_gapless=partition.preserves_offsets,
        )
        for partition in plan.partitions
    }
