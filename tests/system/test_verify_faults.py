"""`sparkmirror verify` finds faults planted into targets of brokers, and takes what brokers do for none."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.batches.producer import ProducerState
from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.storage.positions import Position
from tests.faults.verdict import judge
from tests.support.batches import Rec
from tests.support.broker_data import create_topic, end_offsets, records
from tests.support.planted_faults import FAULTS
from tests.support.waiting import await_value
from tests.system.prepared_mirror import (
    BEGAN_MS,
    OURS,
    PreparedMirror,
    Verified,
    numbered_records,
    prepared_mirror,
    produce,
    verify,
    write,
)

RECORDS: Final = 60
KINDS: Final = "plain", "compacted", "transactional"
CASES: Final = [(kind, name) for kind in KINDS for name in FAULTS]
COMPACTED: Final = {"cleanup.policy": "compact"}
CLEANED: Final = {
    **COMPACTED,
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
}
CLEANED_WITHIN_S: Final = 90.0


def place_of(kind: str, name: str) -> int:
    """The start, the end, or anywhere between."""
    rng = random.Random(f"{kind} {name}")
    last = RECORDS - (2 if name == "swapped" else 1)
    return rng.choice([0, last, rng.randint(1, last - 1)])


def topic_of(kind: str, name: str) -> str:
    return f"faults.{kind}.{name}"


def mirror(made: PreparedMirror, topic: str, copies: Sequence[Rec], kind: str) -> None:
    """One partition on both sides, with the position at its end."""
    config = COMPACTED if kind == "compacted" else None
    sides = (made.source, topic, numbered_records(RECORDS)), (made.target, f"V.{topic}", copies)
    for cluster, of_side, written in sides:
        create_topic(cluster.bootstrap_servers, of_side, config=config)
        if kind == "transactional":
            write_in_transactions(cluster, of_side, written)
        else:
            write(cluster, of_side, written)
    store_end(made, topic)


def store_end(made: PreparedMirror, topic: str) -> None:
    (source_end,) = end_offsets(made.source, [topic]).values()
    (target_end,) = end_offsets(made.target, [f"V.{topic}"]).values()
    made.store(topic, Position(source_end - 1, ProducerState(OURS, target_end, target_end)))


def write_in_transactions(cluster: LocalCluster, topic: str, records: Sequence[Rec]) -> None:
    """Every third of them is aborted first."""
    producer = confluent.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(30)
    for number, first in enumerate(range(0, len(records), 10)):
        for commit in (False, True) if number % 3 == 0 else (True,):
            producer.begin_transaction()
            produce(producer, topic, records[first : first + 10])
            producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def write_cleaned(made: PreparedMirror) -> None:
    """A right mirror: the target's cleaner has removed records that the source still has."""
    topic, written = "faults.cleaned", numbered_records(RECORDS)
    spread = [record._replace(timestamp=BEGAN_MS + 20_000 * at) for at, record in enumerate(written)]
    for cluster, of_side, config in (
        (made.source, topic, COMPACTED),
        (made.target, f"V.{topic}", CLEANED),
    ):
        create_topic(cluster.bootstrap_servers, of_side, config=config)
        write(cluster, of_side, spread, {"batch.num.messages": "1"})
    store_end(made, topic)
    await_value(
        lambda: len(list(records(made.target, f"V.{topic}"))) < RECORDS / 2,
        CLEANED_WITHIN_S,
        lambda: "the cleaner has removed nothing",
    )


@pytest.fixture(scope="module")
def verified(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Verified:
    made = prepared_mirror(
        source_cluster,
        target_cluster,
        tmp_path_factory.mktemp("faults"),
        topics=r"faults\..*",
        **{"V.consumer.isolation.level": "read_committed"},
    )
    right = numbered_records(RECORDS)
    with ThreadPoolExecutor(max_workers=8) as threads:
        cleaned = threads.submit(write_cleaned, made)
        planted = [
            threads.submit(
                mirror, made, topic_of(kind, name), FAULTS[name](right, place_of(kind, name)), kind
            )
            for kind, name in CASES
        ]
        planted += [threads.submit(mirror, made, topic_of(kind, "right"), right, kind) for kind in KINDS]
        for written in (*planted, cleaned):
            written.result()
    return verify(made.properties, "-o", "json")


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_planted_fault_is_named_with_partition_and_offset(verified: Verified, kind: str, name: str) -> None:
    found = verified.partitions[f"{topic_of(kind, name)}-0"]
    assert found["state"] == "different"
    assert 1 <= sum(found["counts"].values()) <= 2
    if kind != "transactional":  # there, markers and aborted records have offsets too
        at = place_of(kind, name)
        near = {at, at + 1} if name in ("doubled", "swapped") else {at}
        places = [(each["source_offset"], each["target_offset"]) for each in found["differences"]]
        assert any(near.intersection(place) for place in places), places


@pytest.mark.parametrize("kind", KINDS)
def test_right_copies_are_equal(verified: Verified, kind: str) -> None:
    found = verified.partitions[f"{topic_of(kind, 'right')}-0"]
    assert (found["state"], found["equal"], found["foreign"]) == ("equal", RECORDS, 0)


def test_records_that_the_cleaner_removed_are_no_difference(verified: Verified) -> None:
    found = verified.partitions["faults.cleaned-0"]
    assert (found["state"], found["foreign"]) == ("equal", 0)
    assert found["not_comparable"] > RECORDS / 2
    assert found["equal"] + found["not_comparable"] == RECORDS


def test_the_judge_of_the_soak_finds_all_planted_faults(verified: Verified) -> None:
    judged = judge(verified.code, verified.output, {})
    assert not judged.is_exact
    faulty = {problem.partition(":")[0] for problem in judged.problems}
    assert faulty >= {str(TopicPartition(topic_of(kind, name), 0)) for kind, name in CASES}
