"""Checks that the leader runs the connectors of the config topic and publishes their states."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from sparkmirror.connect.leader import Leader
from sparkmirror.domain.connect import ConnectorConfig, State, Status, TargetState
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import StandingLook
from sparkmirror.mirror.connector_runs import ConnectorRun
from tests.support.mirror_looks import look, source
from tests.unit.connect.connect_memory import Run, config_topic, status_topic

NAME = "mm2-msc"
CONFIG = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector", "name": NAME}
WORKER = "here:8083"


class Bench:
    """A leader over topics in memory; `runs` are those that were begun, in order."""

    def __init__(self) -> None:
        self.configs = config_topic()
        self.statuses, self.written = status_topic()
        self.runs: list[Run] = []
        self.leads = True
        self.while_preparing: Callable[[], None] = lambda: None
        self.leader = Leader(
            self._prepared,
            self.configs,
            self.statuses,
            WORKER,
            lambda: self.leads,
            tracks_topics=True,
        )

    def _prepared(self, config: ConnectorConfig) -> Callable[[], ConnectorRun]:
        if "bad" in config:
            raise ConfigError("bad", config["bad"], "can't be used")
        self.while_preparing()
        self.runs.append(Run(config))
        return lambda: self.runs[-1]

    def reconcile(self) -> None:
        self.leader.reconcile(generation=3)

    def states(self) -> tuple[State | None, list[State]]:
        connector = self.statuses.connectors().get(NAME)
        tasks = self.statuses.tasks(NAME).values()
        return None if connector is None else connector.state, [task.state for task in tasks]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_connector_is_run_and_its_tasks_are_published(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    task_class = "org.apache.kafka.connect.mirror.MirrorSourceTask"
    assert bench.configs.configs.task_configs[NAME] == (
        {**CONFIG, "task.index": "0", "task.class": task_class},
    )
    assert bench.states() == (State.RUNNING, [State.RUNNING])
    status = bench.statuses.connectors()[NAME]
    assert (status.worker_id, status.generation, status.version) == (WORKER, 3, "4.3.1")


def test_a_run_is_told_what_it_begins_with_and_who_leads_and_no_secret(bench: Bench) -> None:
    bench.configs.put_connector(NAME, {**CONFIG, "source.cluster.sasl.jaas.config": "password=s3cret"})
    bench.reconcile()
    assert bench.runs[0].begun_with is not None
    settings, leader = bench.runs[0].begun_with
    assert (leader, settings["name"]) == (WORKER, NAME)
    assert "s3cret" not in str(settings)


def test_nothing_is_written_twice(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    written = len(bench.written)
    bench.leader.reconcile(generation=4)
    assert len(bench.written) == written
    assert len(bench.runs) == 1


def test_task_configs_follow_a_reassignment(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.runs[0].shares = [{"task.index": "0"}, {"task.index": "1"}]
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING, State.RUNNING])
    bench.runs[0].shares = None  # between two generations
    bench.reconcile()
    assert len(bench.configs.configs.task_configs[NAME]) == 2
    bench.runs[0].shares = [{"task.index": "0"}]
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING])


def test_partial_reconciles_cover_changed_connectors_only(bench: Bench) -> None:
    other = "other"
    for name in (NAME, other):
        bench.configs.put_connector(name, CONFIG)
    bench.leader.reconcile(3, whole=False)
    assert len(bench.runs) == 2
    for run in bench.runs:
        run.failed = {0: "too large"}
    bench.configs.put_connector(NAME, {**CONFIG, "topics": "orders"})
    bench.configs.remove_connector(other)
    bench.leader.reconcile(3, whole=False)
    assert [run.config.get("topics") for run in bench.runs] == [None, None, "orders"]
    assert bench.statuses.connector(other) is None
    bench.leader.reconcile(3, whole=False)  # its own tasks are news, too
    bench.runs[-1].failed = {0: "too large"}
    bench.leader.reconcile(3, whole=False)
    assert bench.states() == (State.RUNNING, [State.RUNNING])
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.FAILED])


def test_a_new_leadership_reconciles_everything(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.leader.stop_all()
    bench.leader.reconcile(5, whole=False)
    assert len(bench.runs) == 2


def test_a_changed_config_starts_another_run(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.configs.put_connector(NAME, {**CONFIG, "topics": "orders"})
    bench.reconcile()
    assert [run.config.get("topics") for run in bench.runs] == [None, "orders"]


@pytest.mark.parametrize(
    ("target", "states"),
    [
        (TargetState.PAUSED, (State.PAUSED, [State.PAUSED])),
        (TargetState.STOPPED, (State.STOPPED, [])),
    ],
)
def test_a_paused_connector_keeps_its_tasks_and_a_stopped_one_does_not(
    bench: Bench, target: TargetState, states: tuple[State, list[State]]
) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.configs.put_target_state(NAME, target)
    bench.reconcile()
    assert bench.states() == states
    bench.configs.put_target_state(NAME, TargetState.RUNNING)
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING])
    assert len(bench.runs) == 2


def test_a_connector_paused_before_its_tasks_were_published_has_tasks(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.runs[0].shares = [{"task.index": "0"}, {"task.index": "1"}]
    bench.configs.put_target_state(NAME, TargetState.PAUSED)
    bench.reconcile()
    assert bench.states() == (State.PAUSED, [State.PAUSED, State.PAUSED])


def test_a_pause_during_a_reconfiguration_is_published_once_the_connector_has_stopped(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.configs.put_connector(NAME, {**CONFIG, "topics": "orders"})
    bench.while_preparing = lambda: bench.configs.put_target_state(NAME, TargetState.PAUSED)
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING]), "it copies until the next turn"
    bench.reconcile()
    assert bench.states() == (State.PAUSED, [State.PAUSED])
    assert bench.leader.slots_of_all() == 0, "nothing runs any more"


def test_a_task_with_a_failed_partition_is_failed_until_it_recovers(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.runs[0].failed = {0: "orders-1: too large"}
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.FAILED])
    assert bench.statuses.tasks(NAME)[0].trace == "orders-1: too large"
    bench.runs[0].failed = {}
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING])


def test_a_failed_connector_leaves_its_tasks_running(bench: Bench) -> None:
    """The trace has what a connector can't do, a line for each cause, unless it passes by itself."""
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    too_old = Trouble(Cause(TroubleWord.NOT_SYNCED, Subject.ACTION, "the target is too old"), "sync configs")
    refused = Cause(TroubleWord.NOT_CREATED, Subject.TOPIC, "{name} can't have 3 replicas", "set the factor")
    delayed = Trouble(Cause(TroubleWord.THROTTLED, Subject.TOPIC, "a quota"), "slow")
    bench.runs[0].lacks = [delayed]
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING])
    bench.runs[0].lacks = [*(Trouble(refused, f"t{number}") for number in range(9)), too_old, delayed]
    bench.reconcile()
    assert bench.states() == (State.FAILED, [State.RUNNING])
    assert bench.statuses.connectors()[NAME].trace == (
        "t0, t1, t2, t3, t4 and 4 more not created: t0 can't have 3 replicas; set the factor\n"
        "sync configs not synced: the target is too old"
    )
    bench.runs[0].lacks = ()
    bench.reconcile()
    assert bench.states() == (State.RUNNING, [State.RUNNING])


PACKAGE = "org.apache.kafka.connect.mirror."
CHECKPOINT = {"connector.class": f"{PACKAGE}MirrorCheckpointConnector", "name": "mm2-cpc"}


@pytest.mark.parametrize(
    ("policy", "word", "state"),
    [
        ({"replication.policy.class": f"{PACKAGE}IdentityReplicationPolicy"}, "not synced", State.FAILED),
        ({"replication.policy.separator": "_"}, "not synced", State.FAILED),
        (
            {"replication.policy.internal.topic.separator.enabled": "false"},
            "differs",
            State.RUNNING,
        ),
        ({}, None, State.RUNNING),
        ({"source.cluster.alias": "another"}, None, State.RUNNING),
    ],
    ids=["names", "separator", "nothing that matters", "alike", "another flow"],
)
def test_two_policies_of_one_flow_are_in_the_checkpoint_connector_s_state(
    bench: Bench, policy: dict[str, str], word: str | None, state: State
) -> None:
    aliases = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    bench.configs.put_connector(NAME, {**CONFIG, **aliases, **policy})
    bench.configs.put_connector("mm2-cpc", {**aliases, **CHECKPOINT})
    bench.reconcile()
    bench.reconcile()
    told = [it for run in bench.runs for it in run.troubles()]
    assert [it.word.value for it in told] == ([] if word is None else [word])
    status = bench.statuses.connectors()["mm2-cpc"]
    assert status.state is state
    if state is State.FAILED:
        assert "give both connectors the same replication.policy settings" in (status.trace or "")
        bench.configs.put_connector(NAME, {**CONFIG, **aliases})
        bench.reconcile()
        assert bench.statuses.connectors()["mm2-cpc"].state is State.RUNNING


def test_a_config_that_was_parsed_when_it_was_stored_is_not_parsed_again(bench: Bench) -> None:
    parsed = Run(CONFIG)
    bench.leader.offer(NAME, CONFIG, lambda: parsed)
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    assert not bench.runs
    assert bench.states() == (State.RUNNING, [State.RUNNING])
    bench.leader.restart(NAME)
    bench.reconcile()
    assert len(bench.runs) == 1, "its placeholders may stand for other values now"


def test_what_was_parsed_is_not_used_for_another_config_or_later(bench: Bench) -> None:
    bench.leader.offer(NAME, {**CONFIG, "topics": "others"}, NotImplemented)
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.leader.offer("stopped", CONFIG, NotImplemented)
    bench.configs.put_connector("stopped", CONFIG, TargetState.STOPPED)
    bench.reconcile()
    bench.configs.put_target_state("stopped", TargetState.RUNNING)
    bench.reconcile()
    assert [run.config for run in bench.runs] == [CONFIG, CONFIG]


def test_an_unusable_config_fails_its_connector_only(bench: Bench) -> None:
    bench.configs.put_connector("other", {**CONFIG, "bad": "x"})
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    other = bench.statuses.connectors()["other"]
    assert other.state is State.FAILED
    assert "Invalid value x for configuration bad" in (other.trace or "")
    assert bench.states() == (State.RUNNING, [State.RUNNING])


def test_a_restart_starts_another_run(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    before = len(bench.written)
    bench.leader.restart(NAME)
    bench.reconcile()
    bench.reconcile()
    assert len(bench.runs) == 2
    said = [json.loads(record.value or b"{}")["state"] for record in bench.written[before:]]
    assert said == ["RESTARTING", "RESTARTING", "RUNNING", "RUNNING"]


def test_slots_are_summed_over_running_connectors(bench: Bench) -> None:
    for name in ("one", "two", "paused"):
        bench.configs.put_connector(name, {**CONFIG, "tasks.max": "${file:secrets:tasks}"})
    bench.configs.put_connector("useless", {**CONFIG, "bad": "x"})
    bench.configs.put_target_state("paused", TargetState.PAUSED)
    bench.reconcile()
    for run, slots in zip(bench.runs, (4, 0), strict=True):
        run.slots = slots
    assert bench.leader.slots_of_all() == 4


def test_a_deleted_connector_leaves_no_status(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.runs[0].written = {"A.orders"}
    bench.reconcile()
    assert bench.statuses.topics(NAME) == ["A.orders"]
    bench.configs.remove_connector(NAME)
    bench.reconcile()
    assert bench.states() == (None, [])
    assert bench.statuses.topics(NAME) == []
    left = {record.key: record.value for record in bench.written}
    assert not any(left.values())


def test_a_connector_that_is_deleted_while_it_starts_gets_no_state(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.while_preparing = lambda: bench.configs.remove_connector(NAME)
    bench.leader.reconcile(3, whole=False)
    assert len(bench.runs) == 1
    assert bench.states() == (None, [])
    assert NAME not in bench.configs.configs.task_configs
    bench.leader.reconcile(3, whole=False)
    assert bench.leader.has_ended(NAME)
    assert bench.states() == (None, [])


def test_a_former_leader_writes_nothing(bench: Bench) -> None:
    bench.configs.put_connector(NAME, CONFIG)
    bench.leads = False
    bench.reconcile()
    assert bench.written == []
    assert bench.configs.configs.task_configs[NAME] == ()


def test_an_ending_leader_publishes_unassigned(bench: Bench) -> None:
    elsewhere = Status(State.RUNNING, "elsewhere:8083", 9)
    bench.configs.put_connector(NAME, CONFIG)
    bench.reconcile()
    bench.statuses.put_connector("other", elsewhere)
    bench.leader.unassign(generation=3)
    assert bench.statuses.connectors()[NAME].state is State.UNASSIGNED
    assert bench.statuses.connectors()["other"] == elsewhere


def test_a_look_has_running_connectors_and_why_others_do_not_run(bench: Bench) -> None:
    config = {**CONFIG, "source.cluster.alias": "a", "target.cluster.alias": "b"}
    config |= {"target.cluster.ssl.keystore.password": "planted", "topics": "${file:/kept:elsewhere}"}
    for name in ("running", "paused", "stopped"):
        bench.configs.put_connector(name, {**config, "name": name})
    bench.configs.put_connector("unusable", {**config, "bad": "x"})
    bench.configs.put_target_state("paused", TargetState.PAUSED)
    bench.configs.put_target_state("stopped", TargetState.STOPPED)
    bench.reconcile()
    (run,) = (run for run in bench.runs if run.config["name"] == "running")
    run.seen = source(look())
    bench.configs.put_connector("new", config)
    bench.configs.put_connector("foreign", {**config, "connector.class": "FileStreamSink"})
    seen = {one.connector: one for one in bench.leader.looks()}
    assert all("planted" not in str(one.settings) for one in seen.values())
    assert {one.settings["topics"] for one in seen.values()} == {"${file:/kept:elsewhere}"}
    shown = seen.pop(ConnectorName("MirrorSourceConnector"))
    assert replace(shown, settings={}) == run.seen
    assert shown.settings["target.cluster.ssl.keystore.password"] == "[hidden]"
    standing = {name: one.standstill for name, one in seen.items() if isinstance(one, StandingLook)}
    assert standing == {"new": "starting", "paused": "paused", "stopped": "stopped", "unusable": "failed"}
    failed = seen[ConnectorName("unusable")]
    assert (failed.flow, failed.kind) == (Flow(Alias("a"), Alias("b")), "source")
    assert "can't be used" in (failed.trouble or "")


def test_who_asked_is_told_to_the_run_or_to_the_next_one(bench: Bench) -> None:
    bench.configs.put_connector("one", {**CONFIG, "name": "one"})
    bench.reconcile()
    bench.leader.note("one", "restart, asked for by 'ops'")
    assert bench.runs[0].notes == ["restart, asked for by 'ops'"]
    bench.configs.put_target_state("one", TargetState.PAUSED)
    bench.reconcile()
    for number in range(30):
        bench.leader.note("one", f"resume {number}")
    bench.configs.put_target_state("one", TargetState.RUNNING)
    bench.reconcile()
    assert bench.runs[-1].notes == [f"resume {number}" for number in range(10, 30)]


def test_what_was_asked_of_a_connector_that_is_gone_is_forgotten(bench: Bench) -> None:
    config = {**CONFIG, "name": "one"}
    bench.configs.put_connector("one", config, TargetState.PAUSED)
    bench.reconcile()
    bench.leader.note("one", "deletion, asked for by 'ops'")
    bench.configs.remove_connector("one")
    bench.reconcile()
    bench.configs.put_connector("one", config)
    bench.reconcile()
    assert bench.runs[-1].notes == []
