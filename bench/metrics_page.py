"""Measures `/metrics` of many partitions: CPU seconds and bytes of a page, by names and detail.

`python -m bench.metrics_page [PARTITIONS]` needs no broker: it renders readings that are made up.
"""

import sys
import time
from collections.abc import Sequence
from typing import Final

from sparkmirror.config.metrics_options import MetricsOptions
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.metrics.compression import gzipped
from sparkmirror.metrics.page import Metrics
from sparkmirror.metrics.readings import CheckpointReading, ConnectorReading, PartitionReading, SourceReading
from sparkmirror.metrics.settings import metrics_settings
from sparkmirror.metrics.windows import Summary

_FLOW: Final = Flow(Alias("east"), Alias("west"))
_PARTITIONS_A_TOPIC: Final = 5
_GROUPS: Final = 400
_PAGES: Final = 3


def readings(partitions: int, at: int) -> Sequence[ConnectorReading]:
    """Every partition has another number each time, as under load."""
    source = SourceReading(
        _FLOW,
        ConnectorName("MirrorSourceConnector"),
        {0: "running", 1: "running"},
        partitions=[_partition(number, at) for number in range(partitions)],
        states={"running": partitions},
        retries=0,
        failures=0,
        stalls=0,
        stalled=0,
        lost=0,
        looped=0,
        filtered=0,
        incidents={},
    )
    latency = Summary(8.0, 1.5, 20.5, 7.25)
    checkpoint = CheckpointReading(
        _FLOW,
        ConnectorName("MirrorCheckpointConnector"),
        {0: "running"},
        groups=_GROUPS,
        checkpoints=at,
        last_at=float(at),
        latencies={
            (GroupId(f"group-{number}"), TopicPartition("east.topic-0", 0)): latency
            for number in range(_GROUPS)
        },
        left_out=0,
        lookups_waiting=0,
        lookup_bytes=0,
    )
    return source, checkpoint


def _partition(number: int, at: int) -> PartitionReading:
    topic = f"topic-{number // _PARTITIONS_A_TOPIC}"
    return PartitionReading(
        task=number % 2,
        source=TopicPartition(topic, number % _PARTITIONS_A_TOPIC),
        target_topic=f"east.{topic}",
        records=1000 * at + number,
        bytes=100_000 * at + number,
        record_rate=17.31 + number / 7,
        byte_rate=1731.5 + number / 3,
        latency=Summary(1.25, 0.75, 9.5, 2.13),
        lag=number % 11,
        lag_s=number % 11 / 3,
        lost=0,
        looped=0,
        filtered=0,
        incidents={},
    )


def measure(partitions: int, options: MetricsOptions) -> str:
    """A line: the first page, which learns the names, and the mean of the next ones."""
    made = [readings(partitions, at) for at in range(_PAGES + 1)]
    metrics = Metrics(made.pop, metrics_settings(options), clock=lambda: -float(len(made)))
    began = time.thread_time()
    _, body = metrics.page()
    first, began = time.thread_time() - began, time.thread_time()
    for _ in range(_PAGES):
        _, body = metrics.page()
    mean, began = (time.thread_time() - began) / _PAGES, time.thread_time()
    small = gzipped(body)
    compressing = time.thread_time() - began
    return (
        f"{options.rules:17} {options.detail:10} {first:7.2f} {mean:7.3f} {len(body) / 1e6:9.2f}"
        f" {compressing:8.3f} {len(small) / 1e6:9.2f}"
    )


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(f"{partitions} partitions    first s  next s        MB   gzip s   gzip MB")
    for rules in ("connect", "strimzi", "strimzi-reporter"):
        for detail in ("partition", "topic"):
            print(measure(partitions, MetricsOptions(rules, detail)))


if __name__ == "__main__":
    main()
