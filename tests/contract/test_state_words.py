"""A selected thing that can't be done is in every state: the process, its file from elsewhere, metrics.

Clusters are in memory, Spark's tasks are threads.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sparkmirror.cli.exit_codes import FINE
from sparkmirror.cli.main import main
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.groups.group_explanation import explain
from sparkmirror.groups.group_facts import group_facts
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.mirror.dedicated import MirrorMaker
from sparkmirror.plan.topic_facts import topic_facts
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from sparkmirror.status.mirror_watch import MirrorWatch
from sparkmirror.view.flows import FlowView
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.words import Word
from tests.memory.server import MemoryServer, serving
from tests.support.broker_data import append, create_topic, numbered
from tests.support.connections import connection
from tests.support.mirror import one_way
from tests.support.threaded_spark import ThreadedSpark
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

WAIT_S: Final = 20.0
ALIASES: Final = ("stateA", "stateB")

Pair = tuple[MemoryServer, MemoryServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with serving("A of states") as source, serving("B of states") as target:
        yield source, target


class Running(NamedTuple):
    mirror: MirrorMaker
    flow: ConfiguredFlow

    def inside(self) -> FlowView:
        """The view of the process, as /mirror, pages and /metrics show it."""
        return _view(self.mirror.looks())

    def outside(self) -> FlowView:
        """The view that its file gives from Kafka alone, as status, lag and top show it."""
        assert self.flow.source is not None
        with closing(MirrorWatch([(self.flow, self.flow.source)])) as watch:
            watch.look()
            return _view(watch.looks())

    def await_words(self, expected: dict[str, Word]) -> None:
        """Both tell these words of topics."""
        for view in (self.inside, self.outside):
            self._await(view, words, expected)

    def await_told(self, *expected: tuple[str, str]) -> None:
        """Both tell these troubles, and no others."""
        for view in (self.inside, self.outside):
            self._await(view, told, list(expected))

    @staticmethod
    def _await(view: Callable[[], FlowView], of: Callable[[FlowView], object], expected: object) -> None:
        await_value(lambda: of(view()) == expected, WAIT_S, lambda: f"{view.__name__}: {of(view())}")


def _view(looks: Iterable[ConnectorLook]) -> FlowView:
    (flow,) = (it for it in view_of(Node("node", "1"), looks, time.time()).flows if it.flow == ALIASES)
    return flow


def words(flow: FlowView) -> dict[str, Word]:
    return {topic.name: topic.state.word for topic in flow.topics}


def told(flow: FlowView) -> list[tuple[str, str]]:
    return [(it.what, it.word.value) for it in flow.troubles]


def properties(pair: Pair, **more: str) -> dict[str, str]:
    usual = {
        "sync_topic_acls_enabled": "false",
        "sync_group_offsets_enabled": "true",
        "refresh_topics_interval_seconds": "1",
        "emit_heartbeats_interval_seconds": "1",
    }
    return one_way(pair[0], pair[1], ".*", ALIASES, **{**usual, **more})


def configured(pair: Pair, **more: str) -> list[ConfiguredFlow]:
    flows = MirrorMakerConfig(Properties(properties(pair, **more))).flows(ALIASES[1:])
    return [configured_flow(flow) for flow in flows]


@contextmanager
def running(pair: Pair, **more: str) -> Iterator[Running]:
    flows = configured(pair, **more)
    mirror = MirrorMaker(flows, ThreadedSpark().as_demanded())
    mirror.start()
    try:
        yield Running(mirror, next(flow for flow in flows if flow.flow == ALIASES))
    finally:
        mirror.stop()
        mirror.close()


def fill(server: MemoryServer, *topics: str, partitions: int = 2) -> None:
    for topic in topics:
        create_topic(server.bootstrap_servers, topic, partitions=partitions)
        append(server, topic, numbered(10))


def test_topics_that_can_t_be_created_need_action_until_they_can(pair: Pair) -> None:
    """The factor is more than the one broker gives; one topic is there already."""
    topics = [f"t-00{number}" for number in range(5)]
    fill(pair[0], *topics)
    create_topic(pair[1].bootstrap_servers, f"stateA.{topics[0]}", partitions=2)
    with running(pair, replication_factor="3") as it:
        it.await_words({topics[0]: Word.CAUGHT_UP, **dict.fromkeys(topics[1:], Word.ACTION_REQUIRED)})
        for view in (it.inside(), it.outside()):
            assert view.state.word is Word.ACTION_REQUIRED
            assert told(view) == [(topic, "not created") for topic in topics[1:]]
            first = view.troubles[0]
            assert "INVALID_REPLICATION_FACTOR" in first.reason
            assert first.remedy.startswith("set stateA->stateB.replication.factor")
            assert 0 <= time.time() - first.since < WAIT_S
            assert abs((view.state.for_s or 0) - (time.time() - first.since)) < 5.0
        for topic in topics[1:]:
            create_topic(pair[1].bootstrap_servers, f"stateA.{topic}", partitions=2)  # by hand
        it.await_words(dict.fromkeys(topics, Word.CAUGHT_UP))
        it.await_told()


def test_without_idempotence_all_tell_that_records_may_come_twice(
    pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(pair[0], "orders")
    off = {"stateB_producer_enable_idempotence": "false"}
    file = tmp_path / "mm2.properties"
    file.write_text(
        "".join(f"{key} = {value}\n" for key, value in properties(pair, **off).items()), encoding="utf-8"
    )
    with running(pair, **off) as it:
        it.await_words({"orders": Word.CAUGHT_UP})
        (topic,) = it.inside().topics
        for partition in topic.partitions:
            assert partition.incidents == {"unfenced": 1, "not-idempotent": 1}
            assert "enable.idempotence is false" in str(partition.notice)
        assert main(["status", str(file), "-o", "json"]) == FINE
        (flow,) = json.loads(capsys.readouterr().out)
        assert flow["unfenced_partitions"] == len(topic.partitions)
        main(["plan", str(file), "-o", "json"])
        (planned,) = json.loads(capsys.readouterr().out)
    assert [it["severity"] for it in planned["findings"] if it["subject"] == "enable.idempotence"] == [
        "warns"
    ]


def test_no_topic_at_all_can_be_created(pair: Pair) -> None:
    fill(pair[0], "orders")
    with running(pair, replication_factor="3") as it:
        it.await_words({"orders": Word.ACTION_REQUIRED})
        assert it.inside().state.word is Word.ACTION_REQUIRED
        assert it.outside().state.word is Word.ACTION_REQUIRED


def commit(server: MemoryServer, group: str, *partitions: TopicPartition) -> None:
    with closing(Groups(connection(server))) as groups:
        assert groups.write(GroupId(group), dict.fromkeys(partitions, Committed(5, ""))) == {}


def test_a_group_of_partitions_that_are_not_on_the_target_is_told_so(pair: Pair) -> None:
    """The topic can't be created, since the factor is more than the one broker gives."""
    fill(pair[0], "orders")
    commit(pair[0], "billing", TopicPartition("orders", 1))
    with running(pair, replication_factor="3") as it:
        it.await_words({"orders": Word.ACTION_REQUIRED})
        it.await_told(("orders", "not created"))
        found = explain(group_facts(it.flow, GroupId("billing")))
    (partition,) = found.partitions
    assert partition.why.startswith(
        "stateA.orders-1 is not on stateB: not created: create topic stateA.orders "
    )
    assert "set stateA->stateB.replication.factor" in partition.why
    assert not found.is_fine
    assert partition.numbers["next_sync_writes"] is None


def test_a_group_of_partitions_that_the_target_s_topic_lacks_is_told_so(pair: Pair) -> None:
    """The target's topic has not been grown yet."""
    fill(pair[0], "orders", partitions=5)
    create_topic(pair[1].bootstrap_servers, "stateA.orders", partitions=1)
    commit(pair[0], "billing", TopicPartition("orders", 0), TopicPartition("orders", 4))
    (flow,) = (it for it in configured(pair) if it.flow == ALIASES)
    first, last = explain(group_facts(flow, GroupId("billing"))).partitions
    assert first.why == "no offset sync: nothing of the partition was mirrored yet"
    assert last.why == "stateA.orders-4 is not on stateB"


def test_names_that_can_t_be_are_blocked(pair: Pair) -> None:
    long = "x" * 245
    fill(pair[0], long, "orders")
    with running(pair) as it:
        it.await_words({long: Word.ACTION_REQUIRED, "orders": Word.CAUGHT_UP})
        for view in (it.inside(), it.outside()):
            assert told(view) == [(long, "blocked")]
            assert view.troubles[0].remedy == "add the topic to topics.exclude"


def test_a_flow_that_waits_for_its_first_topic_says_so(pair: Pair) -> None:
    with running(pair) as it:
        it.await_told(("copy topics", "waiting"))
        assert not it.outside().troubles[0].requires_action
        fill(pair[0], "orders")
        it.await_words({"orders": Word.CAUGHT_UP})
        it.await_told()


def test_what_comes_later_is_not_announced_where_nothing_looks_for_it(pair: Pair) -> None:
    fill(pair[0], "orders")
    with running(pair, refresh_topics_enabled="false") as it:
        it.await_words({"orders": Word.CAUGHT_UP})
        fill(pair[0], "later")
        it.await_words({"orders": Word.CAUGHT_UP})
        outside = it.outside()
        assert told(outside) == [("later", "waiting")]
        assert "refresh.topics.enabled=false" in outside.troubles[0].reason
        assert outside.lag.records == 0


def test_own_topics_that_can_t_be_created_are_named_while_data_flows(pair: Pair) -> None:
    fill(pair[0], "orders")
    with running(pair, offset__syncs_topic_replication_factor="3") as it:
        it.await_told(("mm2-offset-syncs.stateB.internal", "not created"))
        for view in (it.inside(), it.outside()):
            assert "set offset-syncs.topic.replication.factor" in view.troubles[0].remedy
            assert view.state.word is Word.ACTION_REQUIRED
        it.await_words({"orders": Word.CAUGHT_UP})


def test_a_config_that_the_target_refuses_is_told_while_all_is_well(pair: Pair) -> None:
    """The source has tiered storage, and the target has none."""
    fill(pair[0], "orders", "bills")
    tiered = "remote.storage.enable"
    configs = [pair[0].cluster.topics[topic].config for topic in ("orders", "bills")]
    for config in configs:
        config[tiered] = "true"
    with running(pair, sync_topic_configs_interval_seconds="1") as it:
        it.await_words({"bills": Word.CAUGHT_UP, "orders": Word.CAUGHT_UP})
        it.await_told((tiered, "differs"))
        for view in (it.inside(), it.outside()):
            assert view.state.word is Word.CAUGHT_UP
            (trouble,) = view.troubles
            assert "stateA.bills, stateA.orders can't follow the source" in trouble.reason
            assert "INVALID_CONFIG" in trouble.reason
            assert trouble.remedy == f"let stateB accept it, or add {tiered} to config.properties.exclude"
        assert it.flow.source is not None
        (differs,) = topic_facts(it.flow, it.flow.source, "orders").configs
        assert differs.name == tiered
        assert differs.why.startswith("the last sync could not alter it: ")
        for config in configs:
            del config[tiered]
        it.await_told()


def test_a_mirror_that_starts_over_says_so_though_its_positions_have_no_leader_at_first(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """The target's topic holds records of an older mirror, and this one's offsets topic is new."""
    fill(pair[0], "orders")
    fill(pair[1], "orders")
    positions = "mm2-offsets.stateA.internal"
    pair[1].call(lambda: pair[1].cluster.create(positions, 25, {"cleanup.policy": "compact"}))
    log = pair[1].cluster.topics[positions].partitions[18]
    leader, log.leader = log.leader, 99
    keeps = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    with running(pair, replication_policy_class=keeps, stateB_request_timeout_ms="3000") as it:
        await_value(
            lambda: "NOT_LEADER" in caplog.text or "LEADER_NOT" in caplog.text, WAIT_S, lambda: caplog.text
        )
        assert "starts over" not in caplog.text
        log.leader = leader
        await_value(
            lambda: "starts over: no position of this mirror" in caplog.text, WAIT_S, lambda: caplog.text
        )
        it.await_words({"orders": Word.CAUGHT_UP})
    assert "can't tell whether this mirror starts over" not in caplog.text
