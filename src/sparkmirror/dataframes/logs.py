"""Looks up partitions and offsets for a data frame, on the driver. Every wait is bounded."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sparkmirror.dataframes.offset_limits import AtOffsets, AtTime, AtTimes, Bound, OffsetLimit
from sparkmirror.dataframes.query_offset import QueryOffset
from sparkmirror.dataframes.read_options import ReadOptions
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.domain.topics import ListedTopic
from sparkmirror.kafka.admin.topic_listing import TopicLister
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import LogEnd, log_ends_by
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.retries import Retries
from sparkmirror.policies.java_regex import compile_list

_NO_RECORD = -1


@dataclass(frozen=True, slots=True)
class FoundPartitions:
    """The partitions that a query reads now, and the ids of their topics."""

    partitions: Collection[TopicPartition]
    topic_ids: Mapping[str, bytes]


class Logs:
    """Keeps its connections. Not thread-safe: one owner, who closes it. All methods raise KafkaError."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._settings = options.consumer
        self._cluster = Cluster(options.consumer.connection)
        self._lister = TopicLister(self._cluster)
        self._network = network_of(options.consumer.connection)

    def partitions(self) -> FoundPartitions:
        """List the selected partitions. Raises KafkaError for a named topic that doesn't exist."""
        topics = self._topics()
        found = [
            TopicPartition(name, number)
            for name, topic in topics.items()
            for number in range(topic.partitions)
        ]
        if self._options.assigned:
            missing = sorted(set(self._options.assigned) - set(found))
            if missing:
                raise ConfigError("assign", str(missing[0]), f"is no partition on {self._cluster.name}")
            found = list(self._options.assigned)
        return FoundPartitions(found, {name: topic.topic_id for name, topic in topics.items()})

    def starts(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return self._offsets(partitions, Bound.EARLIEST)

    def ends(self, known: Mapping[TopicPartition, int] | None = None) -> QueryOffset:
        """The end of every partition that there is now.

        Asks again where one is before a known offset: a leader that was elected just now may not know yet
        what is committed.
        """
        for _ in range(max(1, self._options.lookup_retries)):
            found = self.partitions()
            ends = self._log_ends(found.partitions, Bound.LATEST)
            if all((known or {}).get(partition, 0) <= end.offset for partition, end in ends.items()):
                break
            self._network.sleep(self._options.lookup_interval_s)
            self._cluster.forget()
        offsets = {partition: end.offset for partition, end in ends.items()}
        return QueryOffset(
            offsets, found.topic_ids, {partition: end.epoch for partition, end in ends.items()}
        )

    def at(self, limit: OffsetLimit, *, starting: bool) -> QueryOffset:
        """The offsets of a limit. Raises ConfigError where it names other partitions than there are."""
        found = self.partitions()
        match limit:
            case Bound():
                offsets: Mapping[TopicPartition, int] = self._offsets(found.partitions, limit)
            case AtOffsets(given):
                self._check_named(given, found.partitions, starting=starting)
                offsets = self._resolved(given)
                if not starting:
                    offsets = self._within(offsets)
            case AtTimes(times):
                self._check_named(times, found.partitions, starting=starting)
                offsets = self._since(times, starting=starting)
            case AtTime(time):
                offsets = self._since(dict.fromkeys(found.partitions, time), starting=starting)
        return QueryOffset(offsets, found.topic_ids)

    def since(self, times: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The first offset with a record of that time (ms) or later, the end where there is none."""
        found = self._by_time(times)
        return found | self._offsets([each for each, at in found.items() if at == _NO_RECORD], Bound.LATEST)

    def close(self) -> None:
        self._cluster.close()

    def _topics(self) -> Mapping[str, ListedTopic]:
        options = self._options
        if options.pattern is not None:
            matches = compile_list([options.pattern], "subscribePattern").fullmatch
            listing = self._lister.read()
            return {name: listing.topics[name] for name in listing.counts if matches(name)}
        names = options.topics or {partition.topic for partition in options.assigned}
        topics = self._lister.named(names)
        for name, topic in topics.items():
            if topic.error:
                raise self._cluster.error(topic.error, f"read topic {name}", Need.DESCRIBE_TOPIC.of(name))
        return topics

    def _offsets(self, partitions: Collection[TopicPartition], which: int) -> dict[TopicPartition, int]:
        return {partition: end.offset for partition, end in self._log_ends(partitions, which).items()}

    def _log_ends(self, partitions: Collection[TopicPartition], which: int) -> dict[TopicPartition, LogEnd]:
        """Retries what may pass until the request's time-out has passed."""
        found: dict[TopicPartition, LogEnd] = {}
        retries = Retries(self._settings.connection)
        while left := [partition for partition in partitions if partition not in found]:
            answers = log_ends_by(self._cluster, self._settings, left, which)
            found |= {at: end for at, end in answers.items() if isinstance(end, LogEnd)}
            errors = [error for error in answers.values() if isinstance(error, SparkmirrorError)]
            if errors:
                retries.wait(min(errors, key=lambda error: error.retriable))
        return found

    def _resolved(self, given: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = dict(given)
        for bound in Bound:
            found |= self._offsets([each for each, offset in given.items() if offset == bound], bound)
        return found

    def _by_time(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for time in set(times.values()):
            found |= self._offsets([each for each, at in times.items() if at == time], time)
        return found

    def _within(self, ends: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The ends that records are there for. Raises ConfigError if others are an error."""
        latest = self._offsets(ends, Bound.LATEST)
        beyond = sorted(partition for partition, end in ends.items() if end > latest[partition])
        if beyond and self._options.fails_on_data_loss:
            first = beyond[0]
            reason = f"the partition ends at offset {latest[first]}"
            raise ConfigError("endingOffsets", f"{first}: {ends[first]}", reason)
        return {partition: min(end, latest[partition]) for partition, end in ends.items()}

    def _since(self, times: Mapping[TopicPartition, int], *, starting: bool) -> dict[TopicPartition, int]:
        found = self._by_time(times)
        behind = sorted(partition for partition, offset in found.items() if offset == _NO_RECORD)
        if starting and behind and not self._options.starts_at_latest:
            reason = (
                f"{behind[0]} has no record of {times[behind[0]]} or later; "
                "startingOffsetsByTimestampStrategy=latest starts at its end"
            )
            raise ConfigError("startingTimestamp", times[behind[0]], reason)
        return found | self._offsets(behind, Bound.LATEST)

    def _check_named(
        self,
        given: Collection[TopicPartition],
        there: Collection[TopicPartition],
        *,
        starting: bool,
    ) -> None:
        odd = sorted(set(given) ^ set(there))
        if odd:
            option = "startingOffsets" if starting else "endingOffsets"
            state = "is not named" if odd[0] in there else f"is no partition on {self._cluster.name}"
            raise ConfigError(option, None, f"all partitions must be named, and no others: {odd[0]} {state}")
