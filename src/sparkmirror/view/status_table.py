"""Makes a table of what a mirror does, a row for each partition. Pure."""

import pyarrow as pa

from sparkmirror.view.flows import FlowView, MirrorView
from sparkmirror.view.values import PartitionView

SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("target", pa.string()),
        ("task", pa.int32()),
        ("state", pa.string()),
        ("position", pa.int64()),
        ("source_end", pa.int64()),
        ("lag", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("error", pa.string()),
    ]
)
"""`position` is the next source offset to copy. Null is unknown, and never 0."""


def status_table(view: MirrorView) -> pa.Table:
    rows = [
        _row(flow, target, it)
        for flow in view.flows
        for topic in flow.topics
        for target, it in ((topic.target, each) for each in topic.partitions)
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return pa.table([list(column) for column in columns], schema=SCHEMA)


def _row(flow: FlowView, target: str | None, it: PartitionView) -> tuple[object, ...]:
    return (
        str(flow.flow),
        it.source.topic,
        it.source.partition,
        target,
        it.task,
        it.state.word.value,
        it.position,
        it.source_end,
        it.lag.records,
        it.lag.seconds,
        it.state.error,
    )
