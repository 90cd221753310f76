"""Transforms of one file make the same records with Java's MirrorMaker 2 and with sparkmirror."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

import confluent_kafka as confluent
import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from tests.support.broker_data import create_topic, records, topics
from tests.support.mirror import REPLICATION, START_TIMEOUT_S, running_mirror
from tests.support.waiting import await_value
from tests.system.java_mm2 import dedicated

ORDERS, AUDIT, PLAIN = "chained.orders", "chained.audit", "chained.plain"
PARTITIONS: Final = {ORDERS: 2, AUDIT: 1, PLAIN: 1}
COUNT: Final = 200
"""The number of records in each partition."""
JAVA, OURS = "j", "s"
"""The first letters of the aliases."""
TARGET: Final = "chainedtarget"
_NOW_MS: Final = 1_700_000_000_000
_SMT: Final = "org.apache.kafka.connect.transforms."
_CONTENTS: Final = (None, b"", b"\xff\xfe", b"x" * 90)
_NAMES: Final = ("eu", "trace", "größe", "via")

Headers = list[tuple[str, str | bytes | None]]
Found = tuple[int | None, bytes | None, bytes | None, Headers, tuple[int, int]]
"""Partition, key, value, headers, kind of timestamp and timestamp of a record."""
Keeps = Callable[[str, bool, bool], bool]
"""Whether it keeps a record of the topic, which has the header `eu`, and is a tombstone."""

PREDICATES: Final = r"""eu HasHeaderKey name=eu
none RecordIsTombstone
audit TopicNameMatches pattern=.*\.audit
routed TopicNameMatches pattern=.*\.routed-orders
seen HasHeaderKey name=seen"""


class Flow(NamedTuple):
    """`links` are `alias type option=value …`, of Java's types; `names` are the topics on the target."""

    links: Sequence[str]
    keeps: Keeps
    names: Mapping[str, str] = {}

    def properties(self) -> dict[str, str]:
        return {**_items("transforms", self.links), **_items("predicates", PREDICATES.splitlines())}


def _items(kind: str, lines: Sequence[str]) -> dict[str, str]:
    package = _SMT if kind == "transforms" else f"{_SMT}{kind}."
    found = {kind: ",".join(line.split()[0] for line in lines)}
    for alias, simple, *options in map(str.split, lines):
        found[f"{kind}.{alias}.type"] = package + simple
        pairs = (option.split("=", 1) for option in options)
        found |= {f"{kind}.{alias}.{name}": value for name, value in pairs}
    return found


FLOWS: Final[Mapping[str, Flow]] = {
    "eu": Flow(
        [
            "onlyeu Filter predicate=eu negate=true",
            "values Filter predicate=none negate=false",
            "twice InsertHeader header=eu value.literal=null",
        ],
        lambda _, eu, tombstone: eu and not tombstone,
    ),
    "order": Flow(
        [
            "drop DropHeaders headers=eu,via predicate=audit negate=true",
            "noeu Filter predicate=eu",
            "mark InsertHeader header=seen value.literal=null predicate=none negate=true",
            "unseen Filter predicate=seen negate=true",
            "again DropHeaders headers=seen predicate=audit",
        ],
        lambda topic, eu, tombstone: not (topic == AUDIT and eu) and not tombstone,
    ),
    "route": Flow(
        [
            r"route RegexRouter regex=(\w+)\.chained\.(orders|plain) replacement=$1.routed-$2",
            "noeu Filter predicate=eu",
            "mark InsertHeader header=seen value.literal=null predicate=routed",
            "drop DropHeaders headers=trace,größe predicate=audit",
        ],
        lambda _, eu, __: not eu,
        {ORDERS: "routed-orders", PLAIN: "routed-plain"},
    ),
}
"""Both mirrors have each flow, by an alias of its own."""
LITERALS: Final = {
    "text": "us",
    "quoted": '"u,s"',
    "number": "5",
    "yes": "true",
    "spaced": "größe x",
    "list": "[1,2]",
    "day": "2026-11-27",
    "map": '{"a":1}',
    "word": '"null"',
}
REWRITTEN: Final = {"decimal": ("1.50", b"1.5")}
"""Literals that Java parses and writes in another way."""


def literals() -> dict[str, str]:
    """A flow whose literals are texts: Java fails with them unless its converter turns them into bytes."""
    values = {**LITERALS, **{name: literal for name, (literal, _) in REWRITTEN.items()}}
    found = {"transforms": ",".join(values), "topics": PLAIN}
    for name, literal in values.items():
        found[f"transforms.{name}.type"] = f"{_SMT}InsertHeader"
        found[f"transforms.{name}.header"] = name
        found[f"transforms.{name}.value.literal"] = literal
    return found | {"header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"}


def properties(side: str, source: LocalCluster, target: LocalCluster) -> dict[str, str]:
    flows = {name: flow.properties() for name, flow in FLOWS.items()} | {"text": literals()}
    settings = {
        "topics": r"chained\..*",
        "tasks.max": "1",
        "emit.checkpoints.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "enabled": "true",
    }
    return {
        **REPLICATION,
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "clusters": ",".join([*(side + name for name in flows), TARGET]),
        f"{TARGET}.bootstrap.servers": target.bootstrap_servers,
        f"{TARGET}.plugin.discovery": "service_load",  # Java starts sooner
        **{f"{side}{name}.bootstrap.servers": source.bootstrap_servers for name in flows},
        **{
            f"{side}{name}->{TARGET}.{key}": value
            for name, flow in flows.items()
            for key, value in (settings | flow).items()
        },
    }


def write(source: LocalCluster) -> dict[str, list[tuple[bool, bool]]]:
    """Write all topics; returns of each record whether it has the header `eu`, and is a tombstone."""
    rng, written = random.Random(7), dict[str, list[tuple[bool, bool]]]()
    producer = confluent.Producer(
        {"bootstrap.servers": source.bootstrap_servers, "linger.ms": 20, "compression.type": "lz4"}
    )
    for topic, partitions in PARTITIONS.items():
        create_topic(source.bootstrap_servers, topic, partitions=partitions)
        for at in range(partitions * COUNT):
            names = [] if topic == PLAIN else rng.choices(_NAMES, k=rng.choice([0, 0, 1, 3]))
            headers: Headers = [(name, rng.choice(_CONTENTS)) for name in names]
            value = rng.choice([None, b"", b"%d" % at, b"x" * 900])
            stamp = _NOW_MS + rng.randint(-9999, 9999)
            key = rng.choice(_CONTENTS)
            producer.produce(topic, value, key, at % partitions, timestamp=stamp, headers=headers)
            written.setdefault(topic, []).append(("eu" in names, value is None))
    assert producer.flush(START_TIMEOUT_S) == 0
    return written


class Mirrored(NamedTuple):
    """Both mirrors have copied everything."""

    target: LocalCluster
    written: Mapping[str, list[tuple[bool, bool]]]

    def found(self, side: str, flow: str, topic: str) -> list[Found]:
        return [_found(record) for record in records(self.target, f"{side}{flow}.{topic}")]


def _found(record: confluent.Message) -> Found:
    headers = record.headers() or []
    assert isinstance(headers, list)
    return record.partition(), record.key(), record.value(), headers, record.timestamp()


@pytest.fixture(scope="module")
def mirrored(
    source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mirrored]:
    folder = tmp_path_factory.mktemp("transforms")
    written = write(source_cluster)
    file = folder / "java.properties"
    file.write_text(javaproperties.dumps(properties(JAVA, source_cluster, target_cluster)), encoding="ascii")
    both = Mirrored(target_cluster, written)
    # Java leaves it to the broker, which knows nothing of the second partition.
    create_topic(
        target_cluster.bootstrap_servers, f"{JAVA}route.routed-orders", partitions=PARTITIONS[ORDERS]
    )
    with ExitStack() as running:
        java = running.enter_context(dedicated(file, folder / "java.log", "--clusters", TARGET))
        ours = running.enter_context(
            running_mirror(folder / "ours", properties(OURS, source_cluster, target_cluster))
        )
        await_value(lambda: _has_all(both, OURS), START_TIMEOUT_S, ours.log_text)
        await_value(lambda: _has_all(both, JAVA), START_TIMEOUT_S, java.log_text)
        ours.stop()
        yield both


def _has_all(both: Mirrored, side: str) -> bool:
    return (
        all(
            len(both.found(side, name, flow.names.get(topic, topic))) >= due(both, flow, topic)
            for name, flow in FLOWS.items()
            for topic in PARTITIONS
        )
        and len(both.found(side, "text", PLAIN)) >= COUNT
    )


def due(both: Mirrored, flow: Flow, topic: str) -> int:
    return sum(flow.keeps(topic, *record) for record in both.written[topic])


@pytest.mark.parametrize("topic", PARTITIONS)
@pytest.mark.parametrize("name", FLOWS)
def test_topics_have_the_records_that_java_writes(mirrored: Mirrored, name: str, topic: str) -> None:
    """Partition, key, value, headers in their order, and timestamp."""
    flow = FLOWS[name]
    named = flow.names.get(topic, topic)
    found = mirrored.found(OURS, name, named)
    assert found == mirrored.found(JAVA, name, named)
    assert len(found) == due(mirrored, flow, topic)


def test_a_routed_topic_is_created_under_its_new_name_only(mirrored: Mirrored) -> None:
    """Java also creates the topic by its old name, which stays empty, and the broker the new one."""
    there = topics(mirrored.target)
    for topic, name in FLOWS["route"].names.items():
        assert there[f"{OURS}route.{name}"] == PARTITIONS[topic]
        assert f"{OURS}route.{topic}" not in there
        assert f"{JAVA}route.{topic}" in there


def test_literals_are_written_as_java_writes_texts(mirrored: Mirrored) -> None:
    found, theirs = (mirrored.found(side, "text", PLAIN) for side in (OURS, JAVA))
    assert len(found) == COUNT
    for ours, java in zip(found, theirs, strict=True):
        assert (ours[:3], ours[4]) == (java[:3], java[4])
        assert [name for name, _ in ours[3]] == [name for name, _ in java[3]]
        differ = {
            name: (one, other)
            for (name, one), (_, other) in zip(ours[3], java[3], strict=True)
            if one != other
        }
        assert differ == {name: (literal.encode(), written) for name, (literal, written) in REWRITTEN.items()}
