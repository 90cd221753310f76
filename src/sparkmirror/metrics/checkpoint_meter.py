"""Counts the checkpoints of a connector and measures their latencies, for `/metrics`."""

import threading
from collections.abc import Collection, Mapping

from sparkmirror.domain.ids import ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.metrics.readings import CheckpointReading, GroupTranslation
from sparkmirror.metrics.windows import SampledValues
from sparkmirror.offsets.wire_records import Checkpoint

_SERIES_MAX = 10_000
"""Groups' partitions with a latency series; a large cluster has a hundred thousand."""


class CheckpointMeter:
    """Counts what a checkpoint connector does. One thread writes, any thread reads."""

    def __init__(self, series_max: int = _SERIES_MAX) -> None:
        self._series_max = series_max
        self._latencies: dict[tuple[GroupId, TopicPartition], SampledValues] = {}
        self._left_out: set[tuple[GroupId, TopicPartition]] = set()
        self._checkpoints = 0
        self._last_at: float | None = None
        self._lookups_waiting = 0
        self._lookup_bytes = 0
        self._translated_at: float | None = None
        self._translations: dict[GroupId, GroupTranslation] = {}
        self._not_committed = 0
        self._lock = threading.Lock()

    def take(self, checkpoints: Collection[Checkpoint], latency_ms: float, at: float) -> None:
        """`at` is their acknowledgement in epoch seconds; `latency_ms` counts from reading the groups."""
        with self._lock:
            self._checkpoints += len(checkpoints)
            self._last_at = at
            for checkpoint in checkpoints:
                of = checkpoint.group, checkpoint.topic_partition
                if of not in self._latencies and len(self._latencies) >= self._series_max:
                    self._left_out.add(of)
                else:
                    self._latencies.setdefault(of, SampledValues()).note(latency_ms, at)

    def looked_up(self, waiting: int, bytes_read: int) -> None:
        """An interval's look-ups: the offsets that were left over, and the bytes that were read."""
        with self._lock:
            self._lookups_waiting = waiting
            self._lookup_bytes += bytes_read

    def translated(self, translations: Mapping[GroupId, GroupTranslation], at: float) -> None:
        """A whole round: the groups whose offsets could be read. Others keep what they had."""
        with self._lock:
            self._translated_at = at
            for group, translation in translations.items():
                if group in self._translations or len(self._translations) < self._series_max:
                    self._translations[group] = translation

    def refused(self, groups: int) -> None:
        """Take the number of groups whose offsets the target refuses, of a whole round."""
        with self._lock:
            self._not_committed = groups

    def reading(
        self, of: tuple[Flow, ConnectorName], groups: Collection[GroupId] | None, now: float
    ) -> CheckpointReading:
        """`now` in epoch seconds. Removes the series of groups that are no longer followed."""
        with self._lock:
            if groups is not None:
                followed = set(groups)
                for gone in [key for key in self._latencies if key[0] not in followed]:
                    del self._latencies[gone]
                self._translations = {
                    group: its for group, its in self._translations.items() if group in followed
                }
                self._left_out = {key for key in self._left_out if key[0] in followed}
            return CheckpointReading(
                *of,
                tasks={} if groups is None else {0: "running"},
                groups=None if groups is None else len(groups),
                checkpoints=self._checkpoints,
                last_at=self._last_at,
                latencies={key: values.summary(now) for key, values in self._latencies.items()},
                left_out=len(self._left_out),
                lookups_waiting=self._lookups_waiting,
                lookup_bytes=self._lookup_bytes,
                translated_at=self._translated_at,
                translations=dict(self._translations),
                not_committed=self._not_committed,
            )
