"""Adds up the partitions of each topic, for pages that a monitoring system can afford. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import isnan, nan

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.readings import ConnectorReading, PartitionReading, SourceReading
from sparkmirror.metrics.windows import Summary

ALL = -1
"""The number of a topic's partitions together."""


def by_topic(readings: Collection[ConnectorReading]) -> list[ConnectorReading]:
    """The readings with one partition for each topic."""
    return [
        replace(reading, partitions=_topics(reading.partitions, reading.incomplete))
        if isinstance(reading, SourceReading)
        else reading
        for reading in readings
    ]


def _topics(partitions: Iterable[PartitionReading], incomplete: Collection[str]) -> list[PartitionReading]:
    of: dict[tuple[str, str], list[PartitionReading]] = {}
    for it in partitions:
        of.setdefault((it.source.topic, it.target_topic), []).append(it)
    return [_together(its, is_whole=topic not in incomplete) for (topic, _), its in of.items()]


def _together(its: Sequence[PartitionReading], *, is_whole: bool) -> PartitionReading:
    """A lag that is not known of one partition is not known of the topic. `is_whole`: all are there."""
    first = its[0]
    lags = [it.lag for it in its] if is_whole else [None]
    ages = [it.lag_s for it in its if it.lag_s is not None]
    incidents: Counter[str] = Counter()
    for it in its:
        if it.incidents:
            incidents.update(it.incidents)
    return PartitionReading(
        task=min(it.task for it in its),
        source=TopicPartition(first.source.topic, ALL),
        target_topic=first.target_topic,
        records=sum(it.records for it in its),
        bytes=sum(it.bytes for it in its),
        record_rate=sum(it.record_rate for it in its),
        byte_rate=sum(it.byte_rate for it in its),
        latency=_latency(its),
        lag=None if None in lags else sum(lag for lag in lags if lag is not None),
        lag_s=max(ages, default=None),
        lost=sum(it.lost for it in its),
        looped=sum(it.looped for it in its),
        filtered=sum(it.filtered for it in its),
        incidents=incidents,
    )


def _latency(its: Sequence[PartitionReading]) -> Summary:
    """The mean is weighted by records per second."""
    busy = [it for it in its if not isnan(it.latency.mean)]
    if not busy:
        return Summary(max(it.latency.last for it in its), nan, nan, nan)
    weights = [it.record_rate or 1e-9 for it in busy]
    mean = sum(it.latency.mean * weight for it, weight in zip(busy, weights, strict=True)) / sum(weights)
    return Summary(
        max(it.latency.last for it in busy),
        min(it.latency.low for it in busy),
        max(it.latency.high for it in busy),
        mean,
    )
