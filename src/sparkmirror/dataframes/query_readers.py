"""The readers of batch and streaming queries: planned on the driver, reading in tasks."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sparkmirror.dataframes.logs import Logs
from sparkmirror.dataframes.planning import OffsetRange, divided
from sparkmirror.dataframes.pushed_filters import Bounds, bounds_of
from sparkmirror.dataframes.query_offset import QueryOffset, limited, lost_between, records_between
from sparkmirror.dataframes.range_reader import Reading, data_loss, read_range
from sparkmirror.dataframes.read_options import ReadOptions, read_options
from sparkmirror.dataframes.schema import check_source_schema
from sparkmirror.domain.ids import GroupId
from sparkmirror.kafka.data.partition_reader import PartitionReader
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.kafka.net.transport import network_of

_log = logging.getLogger(__name__)


@dataclass
class RangeOfPartition(InputPartition):
    """The range that a task reads."""

    wanted: OffsetRange

    def __repr__(self) -> str:
        return f"{self.wanted.partition} [{self.wanted.first}, {self.wanted.end})"


class _Rows:
    """Reads ranges in tasks, as a reader's schema has the columns."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._reading = Reading(
            options.consumer, schema.names, options.fails_on_data_loss, options.poll_timeout_s
        )

    def read(self, partition: RangeOfPartition, bounds: Bounds | None = None) -> Iterator[pa.RecordBatch]:
        reading = self._reading if bounds is None else replace(self._reading, times=bounds.times)
        fetch_bytes = reading.consumer.partition_fetch_bytes_max
        with closing(PartitionReader(reading.consumer, fetch_bytes)) as reader:
            for found in read_range(reading, partition.wanted, reader):
                # Spark compares schemas, and names the items of lists otherwise.
                yield pa.record_batch(
                    [
                        column.cast(field.type)
                        for column, field in zip(found.columns, self._schema, strict=True)
                    ],
                    schema=self._schema,
                )


class BatchReader(DataSourceReader):
    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = _Rows(options, schema)
        self._starting, self._ending = options.batch_limits()
        self._bounds: Bounds | None = None

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with closing(Logs(options)) as logs:
            starts = logs.at(self._starting, starting=True).offsets
            ends = logs.at(self._ending, starting=False).offsets
            ranges = [OffsetRange(each, starts[each], ends[each]) for each in starts if each in ends]
            ranges = self._cut(ranges, logs)
        return _parts(ranges, options)

    def _cut(self, ranges: Sequence[OffsetRange], logs: Logs) -> list[OffsetRange]:
        """Cut the ranges to what the filters need, from the first record in time on."""
        if self._bounds is None:
            return list(ranges)
        needed = [cut for each in ranges if (cut := self._bounds.cut(each)) is not None]
        first_ms = self._bounds.times.first
        if first_ms <= 0:
            return needed
        since = logs.since({each.partition: first_ms for each in needed})
        return [each._replace(first=max(each.first, since[each.partition])) for each in needed]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangeOfPartition):  # Spark's own, where there is nothing to read
            return iter(())
        return self._rows.read(partition, self._bounds)


class FilteringReader(BatchReader):
    """Pushes filters down, which Spark refuses in a session that doesn't allow it."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - PySpark's name
        self._bounds = bounds_of(filters)
        return iter(filters)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in one process on the driver as long as the query; tasks get it pickled, without connections."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = _Rows(options, schema)
        self._starting = options.stream_start()
        self._opened: Logs | None = None
        self._until: QueryOffset | None = None
        """The ends at which a query with `Trigger.AvailableNow` stops."""
        self._latest: QueryOffset | None = None
        self._triggered = -1.0e9
        self._committed: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def _logs(self) -> Logs:
        if self._opened is None:
            self._opened = Logs(self._options)
        return self._opened

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._logs.at(self._starting, starting=True).json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.trigger_offsets_max is not None:
            return ReadMaxRows(options.trigger_offsets_max)
        if options.trigger_offsets_min is not None:
            return ReadMinRows(options.trigger_offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._logs.ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self.commit(start)
        begin = QueryOffset.parse(start)
        ends = self._until or self._logs.ends(begin.offsets)
        self._latest = ends
        if isinstance(limit, ReadAllAvailable):
            return ends.after(begin).json()
        begins = begin.begins(ends, self._logs.starts(begin.new_partitions(ends)))
        options = self._options
        if options.trigger_offsets_min is not None and self._until is None:
            now = network_of(options.consumer.connection).time()
            is_overdue = now - self._triggered >= options.trigger_delay_max_s
            if not is_overdue and records_between(begins, ends) < options.trigger_offsets_min:
                return start
            self._triggered = now
        if options.trigger_offsets_max is not None:
            ends = limited(begins, ends, options.trigger_offsets_max)
        return ends.after(begin).json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._latest is None else self._latest.json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, ends = QueryOffset.parse(start), QueryOffset.parse(end)
        new = set(begin.new_partitions(ends))
        log_starts = self._logs.starts(new)
        lost = lost_between(begin, ends, log_starts)
        if lost and self._options.fails_on_data_loss:
            raise data_loss(lost)
        for what in lost:
            _log.warning("%s", what)
        begins = begin.begins(ends, log_starts)
        ranges = [
            OffsetRange(each, begins[each], end, -1 if each in new else begin.epochs.get(each, -1))
            for each, end in ends.offsets.items()
        ]
        return _parts(ranges, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangeOfPartition)
        return self._rows.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit a finished epoch for the group of `commit.group.id`. Spark's checkpoint is what counts.

        Spark calls it when it plans the next epoch, which a query may not have: `latestOffset` is called once
        more, and starts where the last epoch has ended.
        """
        if self._options.commit_group is None or end == self._committed:
            return
        offsets = QueryOffset.parse(end).offsets
        with closing(Groups(self._options.consumer.connection)) as groups:
            committed = {partition: Committed(offset, "") for partition, offset in offsets.items()}
            refused = groups.write(GroupId(self._options.commit_group), committed)
        for error in refused.values():
            raise error
        self._committed = end

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _parts(ranges: Sequence[OffsetRange], options: ReadOptions) -> Sequence[InputPartition]:
    parts = divided(ranges, options.partitions_min, options.partition_records_max)
    return [RangeOfPartition(part) for part in parts]


def batch_reader(options: Mapping[str, str], schema: StructType) -> BatchReader:
    """Raises ConfigError."""
    check_source_schema(schema)
    parsed = read_options(options)
    return (FilteringReader if parsed.pushes_down else BatchReader)(parsed, schema)


def stream_reader(options: Mapping[str, str], schema: StructType) -> StreamReader:
    """Raises ConfigError."""
    check_source_schema(schema)
    return StreamReader(read_options(options), schema)
