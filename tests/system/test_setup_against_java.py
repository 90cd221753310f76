"""Topics, configs and ACLs that sparkmirror creates on a target equal those that Java MM2 creates.

Both mirror one source with the same file of five flows; the file and Java's result are recorded in
tests/golden/setup for unit tests. Then both targets are changed by hand.
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
from tests.support.recorded_setup import DEPARTURES, FLOWS, SET, TARGET, Acl, Setup, recorded
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
"""API keys of requests that change topics, configs and ACLs."""
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
    """The proxy through which sparkmirror reaches its target."""
    mirror: Mirror
    java: JavaProcess

    @property
    def targets(self) -> tuple[LocalCluster, LocalCluster]:
        return self.target, self.java_target

    def await_setup(self, cluster: LocalCluster, wanted: Setup, timeout_s: float = WAIT_S) -> None:
        """Wait until the cluster has exactly this setup."""
        log = (self.mirror if cluster is self.target else self.java).log_text

        def current() -> str:
            return f"{wanted.difference(common(cluster).as_set())}\n{log()[-20_000:]}"

        await_value(lambda: common(cluster).as_set() == wanted, timeout_s, current)

    def await_records(self, cluster: LocalCluster) -> list[Keyed]:
        """Wait for the records of DELETED."""
        return await_value(lambda: keyed(cluster, DELETED) or None, WAIT_S, self.mirror.log_text)

    def written(self) -> Mapping[str, int]:
        requests = self.proxy.figures.requests
        return {name: requests[key] for key, name in WRITES.items()}


def common(cluster: LocalCluster) -> Setup:
    """Read what both mirrors make."""
    return setup_of(cluster).without(DEPARTURES)


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
        properties = javaproperties.loads(setup_scenario.properties(source, f"{HOST}:{proxy.port}"))
        mirror = stack.enter_context(running_mirror(folder / "mirror", properties))
        yield Stage(source, target, java_target, proxy, mirror, java)
        mirror.stop()


@pytest.fixture(scope="module")
def settled(stage: Stage) -> Stage:
    """Both mirrors have set up their targets."""
    for cluster in stage.targets:
        stage.await_setup(cluster, recorded("java").without(DEPARTURES), START_TIMEOUT_S)
    return stage


@pytest.fixture(scope="module")
def repaired(settled: Stage) -> Stage:
    """Both targets were changed by hand, and both mirrors have synced since."""
    append(settled.source, "orders.v1", BEFORE)
    for cluster in settled.targets:
        assert settled.await_records(cluster) == BEFORE
        drift(cluster)
    for cluster in settled.targets:
        settled.await_setup(cluster, drifted(recorded("java").without(DEPARTURES)))
    return settled


def test_source_equals_the_recorded_source(stage: Stage) -> None:
    assert recorded("source").difference(setup_of(stage.source)) == ""


def test_sparkmirror_and_java_set_up_the_same(settled: Stage) -> None:
    """Compares every config with its source, and every ACL."""
    ours, javas = map(common, settled.targets)
    assert DEPARTURES.isdisjoint(setup_of(settled.target).topics)
    assert javas.difference(ours) == ""
    assert len(ours.topics) > len(FLOWS) * 8


def test_manual_changes_are_reverted_or_kept_as_by_java(repaired: Stage) -> None:
    ours, javas = map(common, repaired.targets)
    assert javas.difference(ours) == ""


def test_recreated_topic_continues_with_the_next_record(repaired: Stage) -> None:
    append(repaired.source, "orders.v1", AFTER)
    assert [repaired.await_records(cluster) for cluster in repaired.targets] == [AFTER, AFTER]


def test_sync_without_changes_sends_no_request(repaired: Stage) -> None:
    """Counts requests to the target during several further syncs of configs and ACLs."""
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
    """Change topics, configs and ACLs of the target by hand."""
    configure(
        cluster,
        DRIFTING,
        {
            "retention.bytes": "5",  # has another value at the source: is reverted
            "segment.ms": "123456789",  # a default at the source: is reset
            "message.timestamp.type": "LogAppendTime",  # excluded: is kept
            "index.interval.bytes": "1111",  # set in the source's broker file: is kept
        },
    )
    grow(cluster, GROWN, 5)
    delete_acl(cluster, REVOKED)
    create_acls(cluster, [GRANTED])
    client = admin(cluster)  # a closed client would cancel the request
    client.delete_topics([DELETED])[DELETED].result(WAIT_S)


def drifted(before: Setup) -> Setup:
    """Return the expected setup after the sync."""
    topics = dict(before.topics)
    sizes = topics[DRIFTING]
    kept = {"message.timestamp.type": ("LogAppendTime", SET), "index.interval.bytes": ("1111", SET)}
    topics[DRIFTING] = replace(sizes, configs={**sizes.configs, **kept})
    topics[GROWN] = replace(topics[GROWN], partitions=5)
    return Setup(topics, before.acls | {GRANTED})
