"""Topics that are mirrored with other offsets are recreated with their source's, and groups go with them."""

import re
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import confluent_kafka as confluent
import pytest

from sparkmirror.cli.commands.migrate.execution import choose_flow
from sparkmirror.cli.main import main
from sparkmirror.copy.copy_plan import OffsetSyncPlan, TaskPlan
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.incidents import OnTopicRecreated, Reactions
from sparkmirror.domain.preserving import OnGap, Preserving
from sparkmirror.domain.state_topics import PRODUCER_IDS_TOPIC, StateTopic
from sparkmirror.kafka.groups.consumer_groups import Committed, Groups
from sparkmirror.migrate.promote.promotion import Wanted
from sparkmirror.migrate.remake.remake import Accepted, TopicRemaking
from sparkmirror.migrate.remake.remake_steps import TopicRemake
from sparkmirror.migrate.run import MigrationResult, MigrationRun
from sparkmirror.migrate.steps import Step, StepState, are_done
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.migrations import read_migrations
from tests.contract.copying import CONNECTOR, POSITIONS, SOURCE, Bench, running
from tests.support.broker_data import (
    append,
    config,
    create_topic,
    delete_records,
    end_offsets,
    ensure_compacted_topic,
    numbered,
)
from tests.support.connections import connection
from tests.support.mirror import REPLICATION
from tests.support.topic_reader import TopicReader
from tests.support.waiting import await_value

WAIT_S: Final = 30.0
RETRIED_WITHIN_S: Final = 30.0
"""A partition that waits for an operator."""
SYNCS: Final = "mm2-offset-syncs.far.internal"
NOTHING: Final = Accepted()
PROPERTIES: Final = """\
clusters = near, far
near.bootstrap.servers = {source}
far.bootstrap.servers = {target}
far.offset.storage.topic = {positions}
near->far.enabled = true
near->far.name = ContractConnector
near->far.topics = {topic}
near->far.consumer.isolation.level = read_committed
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
"""
PRESERVE: Final = "near->far.offsets.preserve = true\n"
Placed = list[tuple[int, bytes | None]]


@pytest.fixture(scope="module")
def bench(real_bench: Bench) -> Bench:
    ensure_compacted_topic(real_bench.source.bootstrap_servers, SYNCS)
    for name in (PRODUCER_IDS_TOPIC, StateTopic.PROGRESS.of(SOURCE)):
        ensure_compacted_topic(real_bench.target.bootstrap_servers, name)
    return real_bench


@pytest.fixture
def topic(bench: Bench, request: pytest.FixtureRequest) -> str:
    """With a gap behind its first three records, so copies have other offsets, and a config."""
    name = "remade." + re.sub(r"\W+", "-", request.node.name)
    create_topic(bench.source.bootstrap_servers, name)
    create_topic(bench.target.bootstrap_servers, name, config={"retention.ms": "7200000"})
    transact(bench, name, 3)
    append(bench.source, name, numbered(4, 3))
    return name


@pytest.fixture
def access(bench: Bench, topic: str, tmp_path: Path) -> FlowAccess:
    return access_to(bench, topic, tmp_path, PRESERVE)


def access_to(bench: Bench, topic: str, folder: Path, added: str) -> FlowAccess:
    file = folder / "mm2.properties"
    servers = {"source": bench.source.bootstrap_servers, "target": bench.target.bootstrap_servers}
    text = PROPERTIES.format(**servers, topic=topic, positions=POSITIONS) + added
    file.write_text(text + "".join(f"{key} = {value}\n" for key, value in REPLICATION.items()))
    return choose_flow(file, None)


def plan_of(bench: Bench, topic: str, *, preserves: bool) -> TaskPlan:
    """With preserved offsets it stops at topics that others than the command have deleted."""
    plan = bench.plan(TopicPartition(topic, 0), read_committed=True)
    if preserves:
        reactions = Reactions(on_topic_recreated=OnTopicRecreated.FAIL)
        plan = replace(plan, settings=replace(plan.settings, reactions=reactions))
    partitions = [replace(each, target_topic=topic, preserves_offsets=preserves) for each in plan.partitions]
    syncs = OffsetSyncPlan(connection(bench.source, alias=SOURCE), SYNCS, lag_max=0)
    state = replace(plan.state, progress_topic=StateTopic.PROGRESS.of(SOURCE))
    return replace(
        plan, partitions=tuple(partitions), offset_syncs=syncs, state=state, names_show_origin=False
    )


def transact(bench: Bench, topic: str, count: int) -> None:
    settings = {"bootstrap.servers": bench.source.bootstrap_servers, "transactional.id": f"app-{topic}"}
    producer = confluent.Producer(settings)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for key, value in numbered(count):
        producer.produce(topic, value, key, partition=0)
    producer.commit_transaction(WAIT_S)
    ends = {TopicPartition(topic, 0): count + 1}  # its marker is written behind the answer
    await_value(lambda: end_offsets(bench.source, [topic]) == ends, WAIT_S, lambda: "no marker")


def placed(servers: str, topic: str) -> Placed:
    with TopicReader(servers, topic) as reader:
        return [(record.offset() or 0, record.value()) for record in reader.read(0)]


def both(bench: Bench, topic: str) -> tuple[Placed, Placed]:
    return placed(bench.source.bootstrap_servers, topic), placed(bench.target.bootstrap_servers, topic)


def mirror(bench: Bench, topic: str) -> None:
    """Mirror without `offsets.preserve`."""
    with running(plan_of(bench, topic, preserves=False)):
        await_value(lambda: len(both(bench, topic)[1]) == 7, WAIT_S, lambda: str(both(bench, topic)))
    assert [offset for offset, _ in both(bench, topic)[0]] == [0, 1, 2, 4, 5, 6, 7]
    assert [offset for offset, _ in both(bench, topic)[1]] == [0, 1, 2, 3, 4, 5, 6]


@pytest.fixture
def groups(bench: Bench) -> Iterator[Groups]:
    """The groups of the target."""
    with closing(Groups(connection(bench.target))) as made:
        yield made


def commit(groups: Groups, topic: str, **offsets: int) -> None:
    for name, offset in offsets.items():
        wanted = {TopicPartition(topic, 0): Committed(offset, f"of {name}")}
        assert not groups.write(group_of(topic, name), wanted)


def group_of(topic: str, name: str) -> GroupId:
    return GroupId(f"{topic}.{name}")


def committed(groups: Groups, topic: str, *names: str) -> list[Committed | None]:
    found = []
    for offsets in groups.committed([group_of(topic, name) for name in names]).values():
        assert not isinstance(offsets, KafkaError)
        found.append(offsets.get(TopicPartition(topic, 0)))
    return found


def remaking_of(access: FlowAccess, topic: str, accepted: Accepted = NOTHING) -> TopicRemaking:
    return TopicRemaking(access, Wanted(topic.__eq__, [topic]), accepted)


def plan(access: FlowAccess, topic: str, accepted: Accepted = NOTHING) -> TopicRemake:
    with closing(remaking_of(access, topic, accepted)) as remaking:
        (found,) = remaking.survey()
    return found


def step(found: TopicRemake, name: str) -> Step:
    return next(each for each in found.steps() if each.name == name)


def remake(
    access: FlowAccess, topic: str, accepted: Accepted = NOTHING, *, timeout_s: float = WAIT_S
) -> MigrationResult[TopicRemake]:
    with closing(remaking_of(access, topic, accepted)) as remaking:
        (result,) = MigrationRun(
            survey=remaking.survey,
            apply=remaking.apply,
            report=lambda _: None,
            report_error=lambda _: None,
            sleep=lambda _: time.sleep(0.1),
        ).run(timeout_s)
    return result


def test_a_mirrored_topic_gets_its_sources_offsets_and_so_do_its_groups(
    bench: Bench,
    topic: str,
    access: FlowAccess,
    groups: Groups,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mirror(bench, topic)
    commit(groups, topic, early=2, behind_the_gap=3, late=5, at_the_end=7)
    found = plan(access, topic)
    assert "1 of 1 partition have other offsets on far" in step(found, "check").text
    assert step(found, "switch").text.startswith("remember 4 offsets of groups, delete the topic on far")
    main(["plan", str(tmp_path / "mm2.properties")])
    assert "it is copied with other offsets already, in 1 partition" in capsys.readouterr().out
    command = ["offsets", "preserve", str(tmp_path / "mm2.properties"), topic, "-o", "json"]
    assert main(command) == 0
    assert '"other offsets"' in capsys.readouterr().out
    assert both(bench, topic)[1][3][0] == 3, "a plan changes nothing"
    with running(plan_of(bench, topic, preserves=True)):
        result = remake(access, topic)
        assert result.failure is None
        await_value(
            lambda: both(bench, topic)[0] == both(bench, topic)[1], WAIT_S, lambda: str(both(bench, topic))
        )
    where = committed(groups, topic, "early", "behind_the_gap", "late", "at_the_end")
    assert [each.offset for each in where if each is not None] == [2, 4, 6, 8]
    assert where[0] == Committed(2, "of early")
    assert config(bench.target, topic)["retention.ms"] == "7200000", "what was set by hand stays"
    again = plan(access, topic)
    assert are_done(again.steps())
    assert main([*command, "--execute"]) == 0
    assert '"same"' in capsys.readouterr().out
    assert not read_migrations(access.positions, SOURCE, owner_of(POSITIONS, CONNECTOR)).remakes


def test_an_interrupted_run_continues_with_what_it_remembers(
    bench: Bench, topic: str, access: FlowAccess, groups: Groups
) -> None:
    mirror(bench, topic)
    commit(groups, topic, late=5)
    with closing(remaking_of(access, topic)) as remaking:
        assert not remaking.apply(remaking.survey()[0])
    await_value(
        lambda: "Does it run, with this file?" in str(remake(access, topic, timeout_s=0.5).failure),
        WAIT_S,
        lambda: str(plan(access, topic).steps()),
    )
    with running(plan_of(bench, topic, preserves=True)):
        assert remake(access, topic).failure is None
    assert committed(groups, topic, "late") == [Committed(6, "of late")]


def test_a_run_that_sees_the_old_topic_for_a_moment_forgets_no_group(
    bench: Bench, topic: str, access: FlowAccess, groups: Groups
) -> None:
    """Brokers have old metadata; they have forgotten the groups by then."""
    mirror(bench, topic)
    commit(groups, topic, late=5)
    with closing(remaking_of(access, topic)) as remaking:
        (found,) = remaking.survey()
        assert not remaking.apply(found)
        await_value(lambda: not remaking.survey()[0].is_due, WAIT_S, lambda: "it is there still")
        remembered = remaking.survey()[0].remake
        assert remembered is not None
        assert not remaking.apply(replace(found, remake=remembered, groups=()))
    with running(plan_of(bench, topic, preserves=True)):
        assert remake(access, topic).failure is None
    assert committed(groups, topic, "late") == [Committed(6, "of late")]


def test_what_only_the_target_has_is_lost_only_if_the_user_says_so(
    bench: Bench, topic: str, access: FlowAccess
) -> None:
    mirror(bench, topic)
    delete_records(bench.source, topic, 2)
    append(bench.target, topic, [(b"somebody", b"else's")])
    check = step(plan(access, topic), "check")
    assert check.state is StepState.IMPOSSIBLE
    assert "1 record that others than near->far have written" in check.text
    assert re.search(r"up to [2-3] records that near has removed since. --delete accepts that", check.text)
    with running(plan_of(bench, topic, preserves=True)):
        assert remake(access, topic, Accepted(deletes=True)).failure is None
        await_value(
            lambda: both(bench, topic)[0] == both(bench, topic)[1], WAIT_S, lambda: str(both(bench, topic))
        )


def test_a_partition_that_another_producer_has_stopped_is_recreated(
    bench: Bench, topic: str, access: FlowAccess, groups: Groups
) -> None:
    with running(plan_of(bench, topic, preserves=True)):
        await_value(
            lambda: both(bench, topic)[0] == both(bench, topic)[1], WAIT_S, lambda: str(both(bench, topic))
        )
    commit(groups, topic, late=5)
    append(bench.target, topic, [(b"somebody", b"else's")])
    append(bench.source, topic, numbered(2, 7))
    with running(plan_of(bench, topic, preserves=True)):
        await_value(lambda: plan(access, topic).is_due, WAIT_S, lambda: "it has not stopped")
        check = step(plan(access, topic), "check")
        assert "1 record that others than near->far have written" in check.text
        result = remake(access, topic, Accepted(deletes=True), timeout_s=WAIT_S + RETRIED_WITHIN_S)
        assert result.failure is None
        await_value(
            lambda: both(bench, topic)[0] == both(bench, topic)[1], WAIT_S, lambda: str(both(bench, topic))
        )
    assert committed(groups, topic, "late") == [Committed(5, "of late")]


def test_a_copy_that_its_source_has_outrun_starts_over_where_that_is_wanted(
    bench: Bench, topic: str, access: FlowAccess, groups: Groups
) -> None:
    """The mirror did not run for longer than the source's retention."""
    plan_now = plan_of(bench, topic, preserves=True)
    with running(plan_now):
        await_value(
            lambda: both(bench, topic)[0] == both(bench, topic)[1], WAIT_S, lambda: str(both(bench, topic))
        )
    commit(groups, topic, late=5)
    append(bench.source, topic, numbered(100, 7))
    delete_records(bench.source, topic, 90)
    assert are_done(plan(access, topic).steps()), "the gap is filled, if nobody asks for more"
    wanted = Accepted(deletes=True, recreates=True)
    assert "1 of 1 partition end on far before near begins" in step(plan(access, topic, wanted), "check").text
    stopping = Preserving(fill_timeout_s=0.0, on_gap=OnGap.STOP)
    with running(replace(plan_now, settings=replace(plan_now.settings, preserving=stopping))):
        assert remake(access, topic, wanted).failure is None
    assert both(bench, topic)[0] == both(bench, topic)[1]
    assert [offset for offset, _ in both(bench, topic)[1]] == list(range(90, 108)), "without a gap"
    assert committed(groups, topic, "late") == [Committed(90, "of late")]


def test_groups_with_members_are_waited_for(bench: Bench, topic: str, access: FlowAccess) -> None:
    mirror(bench, topic)
    settings = {"bootstrap.servers": bench.target.bootstrap_servers, "group.id": group_of(topic, "busy")}
    with confluent.Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 0}) as consumer:
        consumer.subscribe([topic])
        message = await_value(lambda: consumer.poll(0.1), WAIT_S, lambda: "no record")
        consumer.commit(message=message, asynchronous=False)
        stop = step(plan(access, topic), "stop")
    assert stop.state is StepState.WAITING
    assert "have members on far: " + group_of(topic, "busy") in stop.text
    assert step(plan(access, topic), "stop").state is StepState.DONE


def test_a_flow_that_preserves_nothing_deletes_nothing(bench: Bench, topic: str, tmp_path: Path) -> None:
    mirror(bench, topic)
    access = access_to(bench, topic, tmp_path, "")
    result = remake(access, topic, Accepted(deletes=True))
    assert "set near->far.offsets.preserve=true" in str(result.failure)
    assert len(both(bench, topic)[1]) == 7


def test_a_flow_that_continues_as_before_is_told(bench: Bench, topic: str, access: FlowAccess) -> None:
    """The mirror was not restarted with the file: it copies what comes next only."""
    mirror(bench, topic)
    with running(plan_of(bench, topic, preserves=False)):
        await_value(
            lambda: "Does it run, with this file?" in str(remake(access, topic, timeout_s=1).failure),
            WAIT_S,
            lambda: str(plan(access, topic).steps()),
        )
        append(bench.source, topic, numbered(2, 7))
        result = remake(access, topic)
    assert "with other offsets: restart it with this file" in str(result.failure)
