"""Records that the target refuses: the partition fails, others continue, and fixing the config is enough."""

import time
from typing import Final, NamedTuple

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from tests.contract.copying import Bench, ProgressReports, remote, running
from tests.support.broker_data import Keyed, append, configure, numbered
from tests.support.broker_requests import stored_batches

MINUTE_MS: Final = 60_000
ONE_BATCH: Final = {"linger.ms": "1000", "batch.num.messages": "100000"}


class Refusal(NamedTuple):
    """A config of the target topic, a record that it refuses, a config that accepts it, and the error."""

    refusing: dict[str, str]
    record: Keyed
    age_ms: int
    accepting: dict[str, str]
    error: str


def by_config(
    name: str, refusing: object, accepting: object, record: Keyed, error: str, age_ms: int = 0
) -> Refusal:
    return Refusal({name: str(refusing)}, record, age_ms, {name: str(accepting)}, error)


BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
LARGE: Final[Keyed] = (b"large", b"x" * 5000)
SMALL: Final[Keyed] = (b"key", b"value")
REFUSALS: Final = {
    "contract.large": by_config("max.message.bytes", 2000, 20_000, LARGE, "MESSAGE_TOO_LARGE"),
    "contract.past": by_config(
        BEFORE, 10 * MINUTE_MS, 50 * MINUTE_MS, SMALL, "INVALID_TIMESTAMP", 30 * MINUTE_MS
    ),
    "contract.future": by_config(
        AFTER, 10 * MINUTE_MS, 50 * MINUTE_MS, SMALL, "INVALID_TIMESTAMP", -30 * MINUTE_MS
    ),
    "contract.no-key": by_config("cleanup.policy", "compact", "delete", (None, b"value"), "INVALID_RECORD"),
}


def test_refused_record_blocks_only_its_partition_until_it_is_fixed(
    bench: Bench, watch: ProgressReports
) -> None:
    healthy = "contract.healthy"
    bench.create(healthy)
    expected = {topic: refused_in_the_middle(bench, topic, refusal) for topic, refusal in REFUSALS.items()}
    with running(bench.plan(*(TopicPartition(topic, 0) for topic in (healthy, *REFUSALS)))):
        for topic, refusal in REFUSALS.items():
            report = watch.await_progress(topic, has_failed)
            assert f"produce to {remote(topic)}-0: {refusal.error}" in str(report.error)
            assert bench.copied(topic) == expected[topic][:2]
        bench.await_copied(healthy, bench.source_has(healthy, 10))
        for topic, refusal in REFUSALS.items():
            configure(bench.target, remote(topic), refusal.accepting)
        for topic in REFUSALS:
            bench.await_copied(topic, expected[topic])
            watch.await_progress(topic, has_recovered)


def refused_in_the_middle(bench: Bench, topic: str, refusal: Refusal) -> list[Keyed]:
    bench.create(topic, target_config=refusal.refusing)
    at_ms = int(time.time() * 1000) - refusal.age_ms
    append(bench.source, topic, numbered(2))
    append(bench.source, topic, [refusal.record], timestamp_ms=at_ms)
    append(bench.source, topic, numbered(3, 2))
    return bench.written(topic)


def test_a_batch_above_the_targets_limit_is_split(bench: Bench) -> None:
    limits = {"none": 3000, "zstd": 500}
    written: list[Keyed] = [(b"key-%d" % number, number.to_bytes(2) * 100) for number in range(99)]
    topics = {codec: f"contract.split-{codec}" for codec in limits}
    for codec, topic in topics.items():
        bench.create(topic, target_config={"max.message.bytes": str(limits[codec])})
        append(bench.source, topic, written, settings={"compression.type": codec, **ONE_BATCH})
        # The client may send the first record in a batch of its own.
        assert max(len(batch.data) for batch in stored_batches(bench.source, topic)) > limits[codec]
    with running(bench.plan(*(TopicPartition(topic, 0) for topic in topics.values()))):
        for topic in topics.values():
            bench.await_copied(topic, written)
    for codec, topic in topics.items():
        sizes = [len(batch.data) for batch in stored_batches(bench.target, remote(topic))]
        assert len(sizes) > 1
        assert max(sizes) <= limits[codec]


def test_a_split_stops_at_the_record_that_is_too_large_alone(bench: Bench, watch: ProgressReports) -> None:
    topic = "contract.split-refused"
    bench.create(topic, target_config={"max.message.bytes": "2000"})
    written = [*numbered(70), LARGE, *numbered(30, 70)]
    append(bench.source, topic, written, settings=ONE_BATCH)
    with running(bench.plan(TopicPartition(topic, 0))):
        report = watch.await_progress(topic, has_failed)
        assert report.records == 70
        assert report.position == 69
        configure(bench.target, remote(topic), {"max.message.bytes": "20000"})
        bench.await_copied(topic, written)
        assert watch.await_progress(topic, has_recovered).records == 101


def has_failed(report: PartitionProgress) -> bool:
    return report.state is PartitionState.FAILED


def has_recovered(report: PartitionProgress) -> bool:
    return report.state is PartitionState.RUNNING and report.lag == 0 and report.error is None
