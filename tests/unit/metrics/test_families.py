"""Our own metrics, and those of MM2's MBeans under the default names, which are the JMX exporter's."""

from dataclasses import replace
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.exposition import Heads, page
from sparkmirror.metrics.families import families
from sparkmirror.metrics.mbeans import jmx_value, mbeans
from sparkmirror.metrics.naming import Naming
from sparkmirror.metrics.readings import (
    ConnectorReading,
    GcReading,
    JvmReading,
    MemoryReading,
    NodeReading,
    SourceReading,
)
from sparkmirror.metrics.settings import default_settings
from sparkmirror.storage.verified import Verified
from tests.support.metric_readings import CHECKPOINT, FLOW, HEARTBEAT, PARTITION, REFUSED, SOURCE


class Found(NamedTuple):
    """A metric by its name; samples by their labels."""

    kind: str
    samples: list[tuple[dict[str, str], float]]

    @property
    def is_counter(self) -> bool:
        return self.kind == "counter"


def families_of(*readings: ConnectorReading) -> dict[str, Found]:
    text = page(
        [
            *Naming(default_settings().name).metrics(mbeans(readings)),
            *map(Heads().written, families(readings)),
        ]
    )
    every = {}
    for metric in text_string_to_metric_families(text):
        assert len({str(sorted(each.labels.items())) for each in metric.samples}) == len(metric.samples)
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        assert name not in every
        every[name] = Found(metric.type, [(sample.labels, sample.value) for sample in metric.samples])
    return every


def sample(family: Found, **labels: str) -> float:
    """The one sample that has these labels."""
    (number,) = (number for its, number in family.samples if labels.items() <= its.items())
    return number


def test_a_cluster_that_does_not_answer_is_0_and_one_that_was_not_asked_is_not_there() -> None:
    family = families_of(replace(SOURCE, up={FLOW.source: True, FLOW.target: False}))[
        "sparkmirror_cluster_up"
    ]
    assert (sample(family, cluster="us-west"), sample(family, cluster="b")) == (1, 0)
    assert families_of(SOURCE)["sparkmirror_cluster_up"].samples == []


def test_names_are_quoted_as_kafka_quotes_object_names() -> None:
    assert jmx_value("us-west.orders_1 %") == "us-west.orders_1 %"
    assert jmx_value("a->b|x") == '"a->b|x"'
    assert jmx_value('a"*?\\b\nc') == '"a\\"\\*\\?\\\\b\\nc"'
    assert jmx_value("größe") == '"größe"'


def test_partition_labels_fit_queries_for_all_versions_of_kafka() -> None:
    family = families_of(SOURCE)["kafka_connect_mirror_source_connector_record_count"]
    assert sample(family, destination="b", topic="us-west.orders", partition="3") == 7
    assert sample(family, source="us-west", target="b", topic="us-west.orders", partition="3") == 7
    assert not family.is_counter


def test_every_attribute_of_the_mbean_has_a_metric() -> None:
    values = {
        name.removeprefix("kafka_connect_mirror_source_connector_"): family.samples[0][1]
        for name, family in families_of(SOURCE).items()
        if name.startswith("kafka_connect_mirror_source_connector_")
    }
    latency = {"": 2.0, "_min": 1.0, "_max": 4.0, "_avg": 3.0}
    assert values == {
        "record_count": 7,
        "record_rate": 0.5,
        "byte_count": 700,
        "byte_rate": 50.0,
        **{f"record_age_ms{suffix}": value for suffix, value in latency.items()},
        **{f"replication_latency_ms{suffix}": value for suffix, value in latency.items()},
    }


def test_the_consumers_lag_is_by_the_sources_topic_and_javas_client_id() -> None:
    family = families_of(SOURCE)["kafka_consumer_fetch_manager_records_lag"]
    client = '"us-west->b|MirrorSourceConnector-1|replication-consumer"'
    assert sample(family, clientId=client, clientid=client, topic="orders", partition="3") == 5


def test_a_task_is_the_sum_of_its_partitions_and_may_have_none() -> None:
    family = families_of(SOURCE)["kafka_connect_source_task_source_record_write_total"]
    assert [sample(family, connector="MirrorSourceConnector", task=task) for task in "01"] == [0, 7]
    assert not family.is_counter


def test_tasks_are_counted_by_state() -> None:
    every = families_of(SOURCE, CHECKPOINT, HEARTBEAT)
    assert sample(every["kafka_connect_connector_status"], task="1", status="failed") == 1
    of = {"connector": "MirrorSourceConnector"}
    assert sample(every["kafka_connect_worker_connector_failed_task_count"], **of) == 1
    assert sample(every["kafka_connect_worker_connector_total_task_count"], **of) == 2
    assert sample(every["kafka_connect_worker_connector_count"]) == 3
    assert sample(every["kafka_connect_worker_task_count"]) == 4


def test_connectors_of_the_same_name_in_two_flows_are_added_up_in_one_sample() -> None:
    back = Flow(FLOW.target, FLOW.source)
    there = (SOURCE, CHECKPOINT, HEARTBEAT)
    every = families_of(*there, *(replace(reading, flow=back, tasks={0: "failed"}) for reading in there))
    of = {"connector": "MirrorSourceConnector"}
    assert sample(every["kafka_connect_worker_connector_count"]) == 6
    assert sample(every["kafka_connect_worker_task_count"]) == 7
    assert sample(every["kafka_connect_worker_connector_total_task_count"], **of) == 3
    assert sample(every["kafka_connect_worker_connector_failed_task_count"], **of) == 2
    assert sample(every["kafka_connect_source_task_source_record_write_total"], **of, task="1") == 14
    assert sample(every["kafka_connect_source_task_source_record_write_rate"], **of, task="1") == 1.0
    assert sample(every["kafka_connect_connector_status"], **of, task="0", status="running") == 1
    assert sample(every["kafka_connect_connector_status"], **of, task="0", status="failed") == 1


def test_counters_exist_before_anything_happens() -> None:
    """Else `increase()` does not see the first time."""
    family = families_of(SOURCE)["sparkmirror_incidents_total"]
    assert family.is_counter
    assert sample(family, kind="records-lost") == 6
    assert sample(family, kind="source-recreated") == 0
    assert sample(families_of(SOURCE)["sparkmirror_lost_records_total"], source="us-west", target="b") == 9


def test_incidents_of_a_partition_have_its_labels() -> None:
    every, of = families_of(SOURCE), {"topic": "us-west.orders", "partition": "3"}
    assert sample(every["sparkmirror_partition_incidents"], kind="records-lost", **of) == 1
    assert sample(every["sparkmirror_partition_lost_records"], **of) == 2
    assert (
        sample(every["sparkmirror_lag_records"], **of),
        sample(every["sparkmirror_lag_seconds"], **of),
    ) == (
        5,
        1.5,
    )


def test_partitions_without_incidents_have_no_incident_samples() -> None:
    quiet = SOURCE.partitions[0]._replace(incidents={}, lost=0, lag=None, lag_s=None)
    every = families_of(SourceReading(**{**_fields(SOURCE), "partitions": [quiet]}))  # type: ignore[arg-type]
    assert every["sparkmirror_partition_incidents"].samples == []
    assert every["sparkmirror_partition_lost_records"].samples == []
    assert every["sparkmirror_lag_records"].samples == []
    assert every["sparkmirror_lag_seconds"].samples == []
    assert "kafka_consumer_fetch_manager_records_lag" not in every


def _fields(reading: SourceReading) -> dict[str, object]:
    return {name: getattr(reading, name) for name in ("flow", "connector", "tasks", *SourceReading.__slots__)}


def test_checkpoints_and_heartbeats_are_counted() -> None:
    every = families_of(CHECKPOINT, HEARTBEAT)
    latency = every["kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms"]
    labels = {"source": "us-west", "target": "b", "topic": "us-west.orders", "partition": "0"}
    assert sample(latency, group='"my group\\?"', **labels) == 8.0
    assert sample(every["sparkmirror_checkpoints_total"]) == 11
    assert sample(every["sparkmirror_last_checkpoint_timestamp_seconds"]) == 1000.5
    assert sample(every["sparkmirror_heartbeats_total"]) == 6
    assert every["sparkmirror_last_heartbeat_timestamp_seconds"].samples == []


def test_without_connectors_the_counts_are_zero() -> None:
    assert families_of()["kafka_connect_worker_connector_count"].samples == [({}, 0)]


def test_topics_deleted_on_the_source_are_counted() -> None:
    family = families_of(replace(SOURCE, gone=3))["sparkmirror_topics_gone"]
    assert sample(family, connector="MirrorSourceConnector") == 3
    assert not family.is_counter


def test_what_was_never_compared_has_no_sample() -> None:
    assert not any(family.samples for name, family in families_of(SOURCE).items() if "_verify_" in name)


def test_the_last_comparison_of_each_partition() -> None:
    compared = {
        PARTITION.source: Verified(1000.5, 7, 0),
        TopicPartition("orders", 4): Verified(900.0, None, 0),
        TopicPartition("orders", 5): Verified(900.0, 3, 2),
    }
    found = families_of(replace(SOURCE, verified=compared))
    numbers = {
        name: [number for _, number in found[f"sparkmirror_verify_{name}"].samples]
        for name in ("last_timestamp_seconds", "differences", "partitions", "offset")
    }
    assert numbers == {
        "last_timestamp_seconds": [1000.5],
        "differences": [2],
        "partitions": [1, 1, 1],
        "offset": [7],
    }


def test_the_drivers_jvm_has_the_jmx_exporters_names() -> None:
    memory = {"heap": MemoryReading(5, 7, 9), "nonheap": MemoryReading(2, 3, -1)}
    jvm = JvmReading(memory, {"G1 Young Generation": GcReading(4, 0.25)}, 31)
    node = NodeReading("mirror-maker", None, None, is_rebalancing=False, jvm=jvm)
    found = {
        (family.name, *labels): number for family in families([], node) for labels, number in family.samples
    }
    assert found == {
        ("jvm_memory_used_bytes", "heap"): 5,
        ("jvm_memory_used_bytes", "nonheap"): 2,
        ("jvm_memory_committed_bytes", "heap"): 7,
        ("jvm_memory_committed_bytes", "nonheap"): 3,
        ("jvm_memory_max_bytes", "heap"): 9,
        ("jvm_memory_max_bytes", "nonheap"): -1,
        ("jvm_gc_collection_seconds_count", "G1 Young Generation"): 4,
        ("jvm_gc_collection_seconds_sum", "G1 Young Generation"): 0.25,
        ("jvm_threads_current",): 31,
    }


def test_what_can_t_be_done_is_counted_by_its_word_and_by_connector() -> None:
    topics = Cause(TroubleWord.NOT_CREATED, Subject.TOPIC, "no")
    waiting = Cause(TroubleWord.THROTTLED, Subject.TOPIC, "a quota")
    source = replace(
        SOURCE, troubles=[*(Trouble(topics, f"t{number}") for number in range(9)), Trouble(waiting, "slow")]
    )
    family = families_of(source, CHECKPOINT, replace(HEARTBEAT, troubles=[REFUSED]))["sparkmirror_troubles"]
    assert {(its["connector"], its["word"], number) for its, number in family.samples} == {
        ("MirrorSourceConnector", "not created", 9),
        ("MirrorSourceConnector", "throttled", 1),
        ("MirrorHeartbeatConnector", "not committed", 1),
    }
    assert families_of(SOURCE)["sparkmirror_troubles"].samples == []
