"""`metrics.rules` and `metrics.detail` choose the names and the detail of the page."""

from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import pytest

from sparkmirror.config.metrics_options import MetricsOptions, metrics_options
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.metrics.detail import by_topic
from sparkmirror.metrics.mbeans import mbeans
from sparkmirror.metrics.naming import Naming
from sparkmirror.metrics.readings import PartitionReading, SourceReading
from sparkmirror.metrics.settings import metrics_settings
from sparkmirror.metrics.windows import Summary
from tests.support.metric_readings import PARTITION, SOURCE


def heads(rules: str) -> set[str]:
    naming = Naming(metrics_settings(MetricsOptions(rules)).name)
    return {head for metric in naming.metrics(mbeans([SOURCE])) for head, _ in metric.samples}


def test_names_are_chosen_by_name_or_file(tmp_path: Path) -> None:
    labels = '{partition="3",source="us-west",target="b",topic="us-west.orders"}'
    assert f"kafka_connect_mirror_mirrorsourceconnector_record_count{labels}" in heads("strimzi")
    assert "kafka_connect_connect_worker_metrics_task_count" in heads("strimzi-reporter")
    assert "kafka_connect_worker_task_count" in heads("connect")
    file = tmp_path / "rules.yml"
    file.write_text("rules: [{pattern: record-count, name: mine}]", encoding="utf-8")
    assert heads(str(file)) == {"mine"}


def test_options_are_checked() -> None:
    assert metrics_options(Properties({})) == MetricsOptions("connect", "partition")
    with pytest.raises(ConfigError, match="must be one of: partition, topic"):
        metrics_options(Properties({"metrics.detail": "broker"}))
    with pytest.raises(ConfigError, match=r"No such file.*one of connect, strimzi, strimzi-reporter"):
        metrics_settings(MetricsOptions("strimzy"))


def test_the_partitions_of_a_topic_are_added_up() -> None:
    quiet = PARTITION._replace(
        source=PARTITION.source._replace(partition=4),
        records=10,
        record_rate=0.0,
        latency=Summary(9.0, nan, nan, nan),
        lag_s=7.0,
    )
    (reading,) = by_topic([replaced(PARTITION, quiet)])
    assert isinstance(reading, SourceReading)
    (topic,) = reading.partitions
    assert topic.partition_label == "all"
    assert (topic.records, topic.record_rate, topic.lag, topic.lag_s) == (17, 0.5, 10, 7.0)
    assert topic.latency == PARTITION.latency
    assert topic.incidents == {"records-lost": 2}


def test_a_lag_that_is_not_known_of_a_partition_is_not_known_of_the_topic() -> None:
    (reading,) = by_topic([replaced(PARTITION, PARTITION._replace(lag=None, lag_s=None))])
    assert isinstance(reading, SourceReading)
    assert (reading.partitions[0].lag, reading.partitions[0].lag_s) == (None, 1.5)
    silent = PARTITION._replace(latency=Summary(0.0, nan, nan, nan))
    (reading,) = by_topic([replaced(silent, silent)])
    assert isinstance(reading, SourceReading)
    assert isnan(reading.partitions[0].latency.mean)


def replaced(*partitions: PartitionReading) -> SourceReading:
    return replace(SOURCE, partitions=list(partitions))
