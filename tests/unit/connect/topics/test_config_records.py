"""Compares records with KafkaConfigBackingStore's bytes, and folds any history, also a compacted one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.config_records import (
    ConfigFold,
    ConnectConfigs,
    SessionKey,
    StoredLevel,
    commit_record,
    connector_record,
    logger_record,
    session_key_record,
    target_state_record,
    task_record,
)
from sparkmirror.domain.connect import ConnectorConfig, TargetState
from sparkmirror.domain.errors import MalformedRecordError

CONFIG: Final = {"tasks.max": "2", "a": "${file:/x:y}", "name": "c"}
KEY: Final = SessionKey(b"\x00\x01\x02\xff", "HmacSHA256", 1_700_000_000_123)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (
            connector_record("c", CONFIG),
            b"connector-c",
            b'{"properties":{"tasks.max":"2","a":"${file:/x:y}","name":"c"}}',
        ),
        (connector_record("c", None), b"connector-c", None),
        (task_record("c-1", 0, {"x": "y"}), b"task-c-1-0", b'{"properties":{"x":"y"}}'),
        (commit_record("c", 3), b"commit-c", b'{"tasks":3}'),
        (
            target_state_record("c", TargetState.RUNNING),
            b"target-state-c",
            b'{"state":"STARTED","state.v2":"STARTED"}',
        ),
        (
            target_state_record("c", TargetState.PAUSED),
            b"target-state-c",
            b'{"state":"PAUSED","state.v2":"PAUSED"}',
        ),
        (
            target_state_record("c", TargetState.STOPPED),
            b"target-state-c",
            b'{"state":"PAUSED","state.v2":"STOPPED"}',
        ),
        (target_state_record("c", None), b"target-state-c", None),
        (
            session_key_record(KEY),
            b"session-key",
            b'{"key":"AAEC/w==","algorithm":"HmacSHA256","creation-timestamp":1700000000123}',
        ),
        (logger_record(StoredLevel("org.x", "DEBUG")), b"logger-cluster-org.x", b'{"level":"DEBUG"}'),
    ],
)
def test_records_have_the_bytes_of_connect(record: LogRecord, key: bytes, value: bytes | None) -> None:
    assert (record.key, record.value, record.partition) == (key, value, 0)


def test_a_connector_without_a_target_state_is_running() -> None:
    configs = folded([connector_record("c", CONFIG)])
    assert configs.connectors == {"c": CONFIG}
    assert configs.target_states == {"c": TargetState.RUNNING}
    assert configs.task_configs == {"c": ()}


def test_an_initial_state_comes_before_its_connector() -> None:
    stopped = target_state_record("c", TargetState.STOPPED)
    assert folded([stopped]) == ConnectConfigs()
    configs = folded([stopped, connector_record("c", CONFIG)])
    assert configs.target_states == {"c": TargetState.STOPPED}
    resumed = [stopped, connector_record("c", CONFIG), target_state_record("c", None)]
    assert folded(resumed).target_states == {"c": TargetState.RUNNING}


def test_a_removed_connector_leaves_nothing() -> None:
    history = [
        *created("c", 2),
        target_state_record("c", TargetState.PAUSED),
        connector_record("c", None),
    ]
    assert folded(history).target_states == {}
    again = folded([*history, target_state_record("c", None), connector_record("c", CONFIG)])
    assert again.target_states == {"c": TargetState.RUNNING}
    assert again.task_configs == {"c": ()}


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (b'{"state":"PAUSED"}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":"STOPPED"}', TargetState.STOPPED),
        (b'{"state":"PAUSED","state.v2":null}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":5}', TargetState.PAUSED),
    ],
)
def test_the_newer_state_field_takes_precedence(value: bytes, state: TargetState) -> None:
    configs = folded([connector_record("c", CONFIG), LogRecord(b"target-state-c", value)])
    assert configs.target_states == {"c": state}


def test_tasks_are_held_back_until_they_are_committed() -> None:
    first = created("c", 2)
    second = [task_record("c", 0, task("c", "new", 0)), task_record("c", 1, task("c", "new", 1))]
    assert folded(first[:-1]).task_configs == {"c": ()}
    committed = folded(first).task_configs["c"]
    assert committed == (task("c", "", 0), task("c", "", 1))
    assert folded([*first, *second]).task_configs["c"] == committed
    assert folded([*first, *second, commit_record("c", 2)]).task_configs["c"] == (
        task("c", "new", 0),
        task("c", "new", 1),
    )
    assert folded([*first, commit_record("c", 0)]).task_configs["c"] == ()


def test_an_incomplete_set_is_inconsistent_until_a_whole_one_comes() -> None:
    history = [*created("c", 2), task_record("c", 1, {}), commit_record("c", 2)]
    configs = folded(history)
    assert configs.inconsistent == {"c"}
    assert configs.task_configs == {"c": ()}
    # what came before a commit never counts for a later one
    assert folded([*history, task_record("c", 0, {}), commit_record("c", 2)]).inconsistent == {"c"}
    healed = folded([*history, *published("c", "new", 1)])
    assert healed.inconsistent == frozenset()
    assert healed.task_configs == {"c": (task("c", "new", 0),)}
    assert folded([*history, connector_record("c", None)]).inconsistent == frozenset()


@pytest.mark.parametrize(
    ("news", "changed"),
    [
        ([], set()),
        ([task_record("b", 0, {})], set()),
        ([connector_record("b", {**CONFIG, "a": "z"})], {"b"}),
        ([target_state_record("a", TargetState.PAUSED)], {"a"}),
        ([task_record("b", 0, {}), commit_record("b", 1)], {"b"}),
        ([commit_record("b", 2)], {"b"}),
        ([connector_record("a", None), connector_record("c", CONFIG)], {"a", "c"}),
        ([session_key_record(KEY)], set()),
    ],
)
def test_changed_connectors_are_found(news: Sequence[LogRecord], changed: set[str]) -> None:
    history = [*created("a", 1), *created("b", 1)]
    assert folded([*history, *news]).changed_since(folded(history)) == changed


def test_left_over_tasks_of_a_larger_set_are_ignored() -> None:
    left = [connector_record("c", CONFIG), task_record("c", 1, {"old": "1"}), *published("c", "new", 1)]
    assert folded(left).task_configs == {"c": (task("c", "new", 0),)}


def test_tasks_of_a_removed_connector_are_ignored() -> None:
    configs = folded([*published("c", "old", 1), connector_record("c", CONFIG)])
    assert configs.task_configs == {"c": ()}
    again = [connector_record("c", None), connector_record("c", CONFIG), commit_record("c", 1)]
    assert folded([task_record("c", 0, {}), *again]).inconsistent == {"c"}


def test_names_may_hold_dashes_and_numbers() -> None:
    configs = folded([*created("a-1", 1), *created("a", 2), *created("a-", 1)])
    assert {name: len(tasks) for name, tasks in configs.task_configs.items()} == {"a-1": 1, "a": 2, "a-": 1}


def test_log_levels_are_returned_and_change_no_configs() -> None:
    fold = ConfigFold()
    level = StoredLevel("root", "TRACE")
    assert fold.take(logger_record(level)) == level
    assert fold.snapshot() == ConnectConfigs()


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(b"restart-connector-c", b'{"include-tasks":true,"only-failed":false}'),
        LogRecord(b"tasks-fencing-c", b'{"task-count":4}'),
    ],
)
def test_javas_restart_requests_and_task_counts_are_ignored(record: LogRecord) -> None:
    fold = ConfigFold()
    assert fold.take(record) is None
    assert fold.snapshot() == ConnectConfigs()


def test_the_last_session_key_counts_and_is_not_shown() -> None:
    newer = replace(KEY, key=b"newer", created_ms=5)
    configs = folded([session_key_record(KEY), session_key_record(newer)])
    assert configs.session_key == newer
    assert "newer" not in repr(configs)


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(None, b"{}"),
        LogRecord(b"other", b"{}"),
        LogRecord(b"\xff", b"{}"),
        LogRecord(b"session-key-2", session_key_record(KEY).value),
        LogRecord(b"connector-c", b"{"),
        LogRecord(b"connector-c", b"[]"),
        LogRecord(b"connector-c", b'{"properties":[]}'),
        LogRecord(b"target-state-c", b"5"),
        LogRecord(b"target-state-c", b'{"state":"PAUSED","state.v2":"DANCING"}'),
        LogRecord(b"target-state-c", b'{"state":["PAUSED"]}'),
        LogRecord(b"task-c", b'{"properties":{}}'),
        LogRecord(b"task-c-x", b'{"properties":{}}'),
        LogRecord(b"task-c-0", None),
        LogRecord(b"commit-c", None),
        LogRecord(b"commit-c", b'{"tasks":"1"}'),
        LogRecord(b"commit-c", b'{"tasks":true}'),
        LogRecord(b"session-key", None),
        LogRecord(b"session-key", b'{"key":"%","algorithm":"x","creation-timestamp":1}'),
        LogRecord(b"session-key", b'{"key":"AA==","algorithm":"x","creation-timestamp":"1"}'),
        LogRecord(b"logger-cluster-x", None),
        LogRecord(b"logger-cluster-x", b'{"level":5}'),
    ],
)
def test_malformed_records_change_nothing(record: LogRecord) -> None:
    fold = ConfigFold()
    for known in created("c", 1):
        fold.take(known)
    before = fold.snapshot()
    with pytest.raises(MalformedRecordError):
        fold.take(record)
    assert fold.snapshot() == before


def test_values_of_other_types_become_strings() -> None:
    record = LogRecord(b"connector-c", b'{"properties":{"a":1,"b":true,"c":null}}')
    assert folded([record]).connectors == {"c": {"a": "1", "b": "true"}}


# any history

NAMES: Final = st.sampled_from(["c", "c-0", "d"])
WORDS: Final = st.sampled_from(["x", "y", "é"])
STATES: Final = st.sampled_from(TargetState)


def created(name: str, tasks: int) -> list[LogRecord]:
    return [connector_record(name, CONFIG), *published(name, "", tasks)]


def published(name: str, word: str, tasks: int) -> list[LogRecord]:
    records = [task_record(name, number, task(name, word, number)) for number in range(tasks)]
    return [*records, commit_record(name, tasks)]


def task(name: str, word: str, number: int) -> ConnectorConfig:
    return {"name": name, "word": word, "task.index": str(number)}


def configured(name: str, word: str, tasks: int, state: TargetState | None) -> list[LogRecord]:
    """A leader that changes a connector publishes its tasks, also if they are the same."""
    states = [] if state is None else [target_state_record(name, state)]
    return [*states, connector_record(name, {"word": word}), *published(name, word, tasks)]


def removed(name: str) -> list[LogRecord]:
    return [connector_record(name, None), target_state_record(name, None)]


COUNTS: Final = st.integers(0, 3)
WHOLE: Final = st.one_of(
    st.builds(configured, NAMES, WORDS, COUNTS, st.none() | STATES),
    st.builds(published, NAMES, WORDS, COUNTS),
    st.builds(removed, NAMES),
    st.builds(target_state_record, NAMES, STATES).map(lambda record: [record]),
    st.just([session_key_record(KEY)]),
)
"""Complete sequences of records, as a leader writes them."""
SINGLE: Final = st.one_of(
    WHOLE,
    st.builds(task_record, NAMES, COUNTS, st.just({"broken": "off"})).map(lambda record: [record]),
    st.builds(connector_record, NAMES, st.just(CONFIG)).map(lambda record: [record]),
)
"""The same, and sequences of leaders that die in between."""


@given(st.lists(WHOLE, max_size=12), st.data())
def test_what_compaction_drops_was_not_needed(steps: list[list[LogRecord]], data: st.DataObject) -> None:
    history = [record for step in steps for record in step]
    assert folded(compacted(history, data)) == folded(history)


@given(st.lists(SINGLE, max_size=15), st.data())
def test_what_compaction_drops_never_mixes_sets(steps: list[list[LogRecord]], data: st.DataObject) -> None:
    """A leader that died may cost a connector its tasks, which its successor publishes again; no more."""
    history = [record for step in steps for record in step]
    whole, left = folded(history), folded(compacted(history, data))
    assert left.connectors == whole.connectors
    assert left.target_states == whole.target_states
    for name, tasks in left.task_configs.items():
        assert tasks in ((), whole.task_configs[name])


@given(st.lists(SINGLE, max_size=15))
def test_snapshots_hold_together_and_stay(steps: list[list[LogRecord]]) -> None:
    fold = ConfigFold()
    for record in (record for step in steps for record in step):
        before = fold.snapshot()
        kept = replace(before)
        fold.take(record)
        assert before == kept
        configs = fold.snapshot()
        assert configs.task_configs.keys() == configs.target_states.keys() == configs.connectors.keys()
        assert configs.inconsistent <= configs.connectors.keys()
        assert not any(configs.task_configs[name] for name in configs.inconsistent)


def compacted(history: Sequence[LogRecord], data: st.DataObject) -> list[LogRecord]:
    """Compact as a cleaner does, or has so far: what has a successor before `end` is gone before `at`.

    So are some tombstones there, which have been seen for long enough.
    """
    end = data.draw(st.integers(0, len(history)))
    at = data.draw(st.integers(0, end))
    last = {record.key: number for number, record in enumerate(history[:end])}
    left = [number for number, record in enumerate(history[:at]) if last[record.key] == number]
    tombstones = [number for number in left if history[number].value is None]
    gone = set(data.draw(st.lists(st.sampled_from(tombstones), unique=True))) if tombstones else set()
    return [history[number] for number in left if number not in gone] + list(history[at:])


def folded(history: Iterable[LogRecord]) -> ConnectConfigs:
    fold = ConfigFold()
    for record in history:
        fold.take(record)
    return fold.snapshot()
