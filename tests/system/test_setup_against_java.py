"""Topics, configs and ACLs that this mirror sets up, beside those of Java's, on targets that are alike.

Both mirror one source by one file, whose five flows differ; the file and what Java made of it are in
tests/golden/setup, so that unit tests can compare too. Then both targets are changed by hand.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

import javaproperties
import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from tests.support.acls import create_acls, delete_acl
from tests.support.broker_data import Keyed, admin, append, configure, grow, keyed
from tests.support.mirror import START_TIMEOUT_S, Mirror, running_mirror
from tests.support.proxy import Proxy, proxied
from tests.support.recorded_setup import FLOWS, SET, TARGET, Acl, Setup, recorded
from tests.support.waiting import await_value
from tests.system import setup_scenario
from tests.system.java_mm2 import JavaProcess, dedicated
from tests.system.setup_scenario import setup_of

WAIT_S: Final = 60.0
WRITES: Final = {
    19: "CreateTopics",
    20: "DeleteTopics",
    30: "CreateAcls",
    31: "DeleteAcls",
    33: "AlterConfigs",
    37: "CreatePartitions",
    44: "IncrementalAlterConfigs",
}
"""Requests that change what is around the records, by their API keys."""
DESCRIBE_ACLS: Final = 29
DESCRIBE_CONFIGS: Final = 32
ROUNDS: Final = 3

DRIFTING: Final = "plain.sizes"
GROWN: Final = "plain.orders"
DELETED: Final = "plain.orders.v1"
BEFORE: Final[list[Keyed]] = [(b"before", b"1")]
AFTER: Final[list[Keyed]] = [(b"after", b"2")]
REVOKED: Final[Acl] = ("TOPIC", "LITERAL", "plain.orders", "User:both", "*", "READ", "ALLOW")
GRANTED: Final[Acl] = ("TOPIC", "LITERAL", "plain.orders", "User:by-hand", "*", "WRITE", "ALLOW")


@dataclass(frozen=True, slots=True)
class Stage:
    source: LocalCluster
    target: LocalCluster
    java_target: LocalCluster
    proxy: Proxy
    """Before the target: ours knows it by no other address."""
    mirror: Mirror
    java: JavaProcess

    @property
    def targets(self) -> tuple[LocalCluster, LocalCluster]:
        return self.target, self.java_target

    def await_setup(self, cluster: LocalCluster, wanted: Setup, timeout_s: float = WAIT_S) -> None:
        """Until the cluster has exactly this, as far as it was set."""
        log = (self.mirror if cluster is self.target else self.java).log_text

        def told() -> str:
            return f"{wanted.difference(setup_of(cluster).as_set())}\n{log()[-20_000:]}"

        await_value(lambda: setup_of(cluster).as_set() == wanted, timeout_s, told)

    def await_records(self, cluster: LocalCluster) -> list[Keyed]:
        """Of DELETED."""
        return await_value(lambda: keyed(cluster, DELETED) or None, WAIT_S, self.mirror.log_text)

    def written(self) -> Mapping[str, int]:
        requests = self.proxy.figures.requests
        return {name: requests[key] for key, name in WRITES.items()}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("setup")
    with ExitStack() as stack:
        clusters = setup_scenario.start(folder, "ours", "java")
        for cluster in clusters:
            stack.callback(cluster.stop, timeout_s=0)
        source, target, java_target = clusters
        (proxy,) = stack.enter_context(proxied((HOST, target.brokers[0].port)))
        file = folder / "mm2.properties"
        file.write_text(setup_scenario.properties(source, java_target.bootstrap_servers), encoding="ascii")
        java = stack.enter_context(dedicated(file, folder / "java.log", "--clusters", TARGET))
        told = javaproperties.loads(setup_scenario.properties(source, f"{HOST}:{proxy.port}"))
        mirror = stack.enter_context(running_mirror(folder / "mirror", told))
        yield Stage(source, target, java_target, proxy, mirror, java)
        mirror.stop()


@pytest.fixture(scope="module")
def settled(stage: Stage) -> Stage:
    """Both have done what they do."""
    for cluster in stage.targets:
        stage.await_setup(cluster, recorded("java"), START_TIMEOUT_S)
    return stage


@pytest.fixture(scope="module")
def repaired(settled: Stage) -> Stage:
    """Both targets were changed by hand, and both mirrors have repaired what they do repair."""
    append(settled.source, "orders.v1", BEFORE)
    for cluster in settled.targets:
        assert settled.await_records(cluster) == BEFORE
        drift(cluster)
    for cluster in settled.targets:
        settled.await_setup(cluster, drifted(recorded("java")))
    return settled


def test_source_equals_the_recorded_one(stage: Stage) -> None:
    assert recorded("source").difference(setup_of(stage.source)) == ""


def test_sparkmirror_and_java_set_up_the_same(settled: Stage) -> None:
    """Every config of every topic, where its value comes from, every ACL."""
    ours, javas = (setup_of(cluster) for cluster in settled.targets)
    assert javas.difference(ours) == ""
    assert len(ours.topics) > len(FLOWS) * 8


def test_what_is_changed_by_hand_is_repaired_or_kept_as_javas_does(repaired: Stage) -> None:
    ours, javas = (setup_of(cluster) for cluster in repaired.targets)
    assert javas.difference(ours) == ""


def test_recreated_topic_continues_with_the_next_record(repaired: Stage) -> None:
    append(repaired.source, "orders.v1", AFTER)
    assert [repaired.await_records(cluster) for cluster in repaired.targets] == [AFTER, AFTER]


def test_a_quiet_sync_writes_nothing(repaired: Stage) -> None:
    """By what the target is sent while every flow looks at its configs and ACLs some more times."""
    before, written = repaired.proxy.figures.requests, repaired.written()
    assert all(written[name] for name in ("CreateTopics", "CreateAcls", "IncrementalAlterConfigs"))
    rounds = len(FLOWS) * ROUNDS
    repaired.proxy.await_figures(
        lambda figures: all(
            figures.requests[key] >= before[key] + rounds for key in (DESCRIBE_ACLS, DESCRIBE_CONFIGS)
        ),
        WAIT_S,
    )
    assert repaired.written() == written


def drift(cluster: LocalCluster) -> None:
    """As somebody does who thinks that the target is his."""
    configure(
        cluster,
        DRIFTING,
        {
            "retention.bytes": "5",  # set at the source to something else: comes back
            "segment.ms": "123456789",  # a default at the source: reset
            "message.timestamp.type": "LogAppendTime",  # excluded: stays
            "index.interval.bytes": "1111",  # of the source's broker file: nobody looks at it
        },
    )
    grow(cluster, GROWN, 5)
    delete_acl(cluster, REVOKED)
    create_acls(cluster, [GRANTED])
    client = admin(cluster)  # its end would end what it was asked
    client.delete_topics([DELETED])[DELETED].result(WAIT_S)


def drifted(before: Setup) -> Setup:
    """What is left of it."""
    topics = dict(before.topics)
    sizes = topics[DRIFTING]
    kept = {"message.timestamp.type": ("LogAppendTime", SET), "index.interval.bytes": ("1111", SET)}
    topics[DRIFTING] = replace(sizes, configs={**sizes.configs, **kept})
    topics[GROWN] = replace(topics[GROWN], partitions=5)
    return Setup(topics, before.acls | {GRANTED})
