"""Runs the connectors of the config topic on the leader of a group, and publishes their tasks and states.

`reconcile` compares the running connectors with the config topic and acts on differences. It is called once a
second for all connectors, and at once for changed ones; so the next call repairs any earlier failure.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.config.masking import masked
from sparkmirror.config.two_policies import TWO_POLICIES, difference_to_others, is_harmless
from sparkmirror.connect.connector_factory import Prepared
from sparkmirror.connect.topics.config_records import ConnectConfigs
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.connect.validation import KAFKA_VERSION
from sparkmirror.domain.connect import ConnectorConfig, State, Status, TargetState
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, ConnectorName, Flow
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord, trouble_lines
from sparkmirror.metrics.looks import ConnectorKind, ConnectorLook, StandingLook, Standstill
from sparkmirror.metrics.readings import ConnectorReading
from sparkmirror.mirror.connector_runs import ConnectorRun
from sparkmirror.mirror.verifying import Verifying
from sparkmirror.periodic.jobs import start_all, stop_all

_log = logging.getLogger(__name__)

_NOTES_MAX: Final = 20
_TASK_CLASS: Final = "task.class"
_KINDS: Final[Mapping[str, ConnectorKind]] = {
    "MirrorSource": "source",
    "MirrorCheckpoint": "checkpoint",
    "MirrorHeartbeat": "heartbeat",
}
_STANDSTILLS: Final[Mapping[TargetState | None, Standstill]] = {
    TargetState.PAUSED: "paused",
    TargetState.STOPPED: "stopped",
}


@dataclass(slots=True)
class _Started:
    """A started connector; `run` is None where its config is unusable, and `trace` is the error."""

    config: ConnectorConfig
    run: ConnectorRun | None = None
    trace: str | None = None


class Leader:
    """Belongs to one thread, except where a method says otherwise."""

    def __init__(
        self,
        prepared: Callable[[ConnectorConfig], Prepared],
        configs: ConfigTopic,
        statuses: StatusTopic,
        worker_id: str,
        leads: Callable[[], bool],
        *,
        tracks_topics: bool,
    ) -> None:
        """`prepared` raises ConfigError for a config that can't be used.

        `leads` is checked before each step: a node that was frozen may have lost the leadership.
        """
        self._prepared = prepared
        self._configs = configs
        self._statuses = statuses
        self._worker_id = worker_id
        self._leads = leads
        self._tracks_topics = tracks_topics
        self._started: dict[str, _Started] = {}
        self._ending: Collection[str] = ()
        """Connectors that are being stopped."""
        self._seen = ConnectConfigs()
        self._lock = threading.Lock()
        self._to_restart: set[str] = set()
        self._offered: dict[str, tuple[ConnectorConfig, Prepared]] = {}
        """Connectors parsed from configs that were just stored, until the next `reconcile`."""
        self._to_note: dict[str, list[str]] = {}
        """Events of connectors that do not run; they are added to the next run."""
        self._shown: dict[str, tuple[ConnectorConfig, Mapping[str, str]]] = {}
        """The configs of connectors without their secrets."""

    def restart(self, name: str) -> None:
        """Restart at the next `reconcile`. Safe in any thread."""
        with self._lock:
            self._to_restart.add(name)

    def offer(self, name: str, config: ConnectorConfig, prepared: Prepared) -> None:
        """Start this connector if that is its config at the next `reconcile`. Safe in any thread.

        A later start parses the config again, because its placeholders may have other values.
        """
        with self._lock:
            self._offered[name] = config, prepared

    def note(self, name: str, text: str) -> None:
        """Add to the connector's events; to those of its next run if it has none. Safe in any thread."""
        started = self._started.get(name)
        if started is not None and started.run is not None:
            started.run.note(text)
            return
        with self._lock:
            waiting = self._to_note.setdefault(name, [])
            waiting.append(text)
            del waiting[:-_NOTES_MAX]

    def has_ended(self, name: str) -> bool:
        """Whether nothing of the connector runs here. Safe in any thread."""
        return name not in self._started and name not in self._ending

    def verifying(self, name: str) -> Verifying | None:
        """Return None for a connector that does not run, or copies nothing. Safe in any thread."""
        started = self._started.get(name)
        return None if started is None or started.run is None else started.run.verifying

    def reconcile(self, generation: int, *, whole: bool = True) -> None:
        """Start, stop and replace connectors by their configs; publish tasks and states. Raises KafkaError.

        `whole` checks all connectors, not only those whose configs have changed since the last call.
        """
        wanted = self._configs.configs
        with self._lock:
            again = frozenset(self._to_restart)
        names = wanted.changed_since(self._seen) | again
        if whole:
            names.update(wanted.connectors, self._started, self._statuses.connectors())
        if self._leads():
            self._publish_tasks(wanted, self._pausing(wanted, names))  # while their runs still know them
            self._publish_restarts(again & self._started.keys(), generation)
        with self._lock:
            self._to_restart -= again  # requests from here on are for another restart
        self._run(wanted, names, again)
        self._tell_policies(wanted)
        names = self._not_deleted_since(wanted, names)
        if self._leads():
            self._publish_tasks(wanted, names & wanted.connectors.keys())
            self._publish_states(wanted, names, generation)
            self._publish_topics(names & self._started.keys())
            self._seen = wanted

    def stop_all(self) -> None:
        """Stop all connectors; the next leader runs them."""
        self._end(list(self._started))
        self._seen = ConnectConfigs()

    def unassign(self, generation: int) -> None:
        """Publish this worker's connectors as UNASSIGNED, for an orderly stop. Raises KafkaError."""
        status = self._status(State.UNASSIGNED, generation)
        for name, known in self._statuses.connectors().items():
            if known.worker_id == self._worker_id:
                self._statuses.put_connector_safely(name, status)
                for task in self._statuses.tasks(name):
                    self._statuses.put_task_safely(name, task, status)

    def slots_of_all(self) -> int:
        """The number of Spark's slots that the running connectors may use together. Safe in any thread."""
        return sum(run.slots for run in self._runs())

    def readings(self) -> list[ConnectorReading]:
        """The metrics of every connector that runs here. Safe in any thread."""
        return [reading for run in self._runs() if (reading := run.reading())]

    def looks(self) -> list[ConnectorLook]:
        """Return the state of every connector of the group, which this node leads. Safe in any thread."""
        wanted, started = self._configs.configs, dict(self._started)
        looks: list[ConnectorLook] = []
        for name, config in sorted(wanted.connectors.items()):
            look = _look(name, config, started.get(name), wanted.target_states.get(name))
            if look is not None:
                looks.append(replace(look, settings=self._masked(name, config)))
        self._shown = {name: shown for name, shown in self._shown.items() if name in wanted.connectors}
        return looks

    def _masked(self, name: str, config: ConnectorConfig) -> Mapping[str, str]:
        """Mask a config once, and again when it changes."""
        known = self._shown.get(name)
        if known is None or known[0] is not config:
            known = self._shown[name] = config, masked(config)
        return known[1]

    # runs

    def _run(self, wanted: ConnectConfigs, names: Collection[str], again: Collection[str]) -> None:
        running = {
            name: wanted.connectors[name]
            for name in sorted(names)
            if wanted.target_states.get(name) is TargetState.RUNNING
        }
        started = {name: self._started[name].config for name in names if name in self._started}
        self._end([name for name, config in started.items() if config != running.get(name) or name in again])
        for name, config in running.items():
            still = self._configs.configs.target_states.get(name)  # others may have taken seconds to end
            if name not in self._started and still is TargetState.RUNNING:
                self._begin(name, config)
        with self._lock:
            for name in names:
                self._offered.pop(name, None)
                if name not in wanted.connectors:
                    self._to_note.pop(name, None)

    def _runs(self) -> list[ConnectorRun]:
        return [started.run for started in list(self._started.values()) if started.run is not None]

    def _begin(self, name: str, config: ConnectorConfig) -> None:
        started = self._started[name] = _Started(config)
        try:
            started.run = self._prepared_by(name, config)()
        except SparkmirrorError as error:
            _log.error("%s: failed to start: %s", name, error)
            started.trace = str(error)
            return
        with self._lock:
            notes = self._to_note.pop(name, [])
        for text in notes:
            started.run.note(text)
        started.run.configured(masked(config), self._worker_id)
        _log.info("%s: starting", name)
        start_all(started.run.threads, self._leads)

    def _prepared_by(self, name: str, config: ConnectorConfig) -> Prepared:
        with self._lock:
            known, prepared = self._offered.pop(name, (None, None))
        return prepared if prepared is not None and known == config else self._prepared(config)

    def _end(self, names: Collection[str]) -> None:
        self._ending = names
        ended = [(name, self._started.pop(name).run) for name in names]
        try:
            stop_all([thread for _, run in ended if run is not None for thread in run.threads])
        finally:
            self._ending = ()
        if stopped := sorted(name for name, run in ended if run is not None):
            _log.info("stopped %s", ", ".join(stopped))

    def _tell_policies(self, wanted: ConnectConfigs) -> None:
        """Tell checkpoint connectors of source connectors whose topics have other names than theirs."""
        for name, started in self._started.items():
            if started.run is not None and _kind(started.config) == "checkpoint":
                others = (config for other, config in wanted.connectors.items() if other != name)
                found = difference_to_others(started.config, others)
                started.run.tell(TWO_POLICIES, [_two_policies(text) for text in found])

    # publishing

    def _not_deleted_since(self, wanted: ConnectConfigs, names: Collection[str]) -> set[str]:
        """Leave out what was deleted since `wanted`: the next `reconcile` ends it and removes its states."""
        now = self._configs.configs.connectors
        return {name for name in names if name in now or name not in wanted.connectors}

    def _pausing(self, wanted: ConnectConfigs, names: Iterable[str]) -> list[str]:
        """The running connectors that are to be paused; they keep their tasks."""
        states = wanted.target_states
        return [name for name in names if name in self._started and states.get(name) is TargetState.PAUSED]

    def _publish_tasks(self, wanted: ConnectConfigs, names: Iterable[str]) -> None:
        for name in names:
            state = wanted.target_states[name]
            published = wanted.task_configs.get(name, ())
            tasks = self._tasks(name, state, published)
            if list(tasks) != list(published) or name in wanted.inconsistent:
                self._configs.put_task_configs(name, tasks)

    def _tasks(
        self, name: str, state: TargetState, published: Sequence[ConnectorConfig]
    ) -> Sequence[ConnectorConfig]:
        if state is TargetState.STOPPED:
            return ()
        started = self._started.get(name)
        shares = started.run.tasks() if started is not None and started.run is not None else None
        if started is None or shares is None:
            return published
        task_class = started.config["connector.class"].removesuffix("Connector") + "Task"
        return [{**started.config, **share, _TASK_CLASS: task_class} for share in shares]

    def _publish_restarts(self, names: Iterable[str], generation: int) -> None:
        """Publish RESTARTING, until the restarted instances are published as RUNNING."""
        status = self._status(State.RESTARTING, generation)
        for name in names:
            self._statuses.put_connector(name, status)
            for task in self._statuses.tasks(name):
                self._statuses.put_task(name, task, status)

    def _publish_states(self, wanted: ConnectConfigs, names: Iterable[str], generation: int) -> None:
        """`wanted` is what this `reconcile` started; a later pause takes effect at the next one."""
        for name in names:
            known = self._statuses.connector(name)
            if name in wanted.connectors:
                state, trace = self._state(name, wanted.target_states[name])
                self._publish_status(known, self._status(state, generation, trace), name, None)
                self._publish_task_states(name, wanted, generation)
            elif known is not None:
                self._statuses.remove_connector(name)

    def _publish_task_states(self, name: str, wanted: ConnectConfigs, generation: int) -> None:
        known = self._statuses.tasks(name)
        count = len(self._configs.configs.task_configs.get(name, ()))  # which this node has just written
        failures = self._failures(name)
        paused = wanted.target_states[name] is TargetState.PAUSED
        for task in range(count):
            state = State.PAUSED if paused else State.FAILED if task in failures else State.RUNNING
            status = self._status(state, generation, failures.get(task))
            self._publish_status(known.get(task), status, name, task)
        for task in known.keys() - set(range(count)):
            self._statuses.remove_task(name, task)

    def _status(self, state: State, generation: int, trace: str | None = None) -> Status:
        return Status(state, self._worker_id, generation, trace, KAFKA_VERSION)

    def _state(self, name: str, target: TargetState) -> tuple[State, str | None]:
        if target is not TargetState.RUNNING:
            return State[target.name], None
        started = self._started.get(name)
        trace = None if started is None else started.trace if started.run is None else _trace(started.run)
        return (State.RUNNING, None) if trace is None else (State.FAILED, trace)

    def _failures(self, name: str) -> Mapping[int, str]:
        started = self._started.get(name)
        if started is None:
            return {}
        if started.run is None:
            return dict.fromkeys(
                range(len(self._configs.configs.task_configs.get(name, ()))), started.trace or ""
            )
        return started.run.failures()

    def _publish_status(self, known: Status | None, status: Status, name: str, task: int | None) -> None:
        """Skip a known status: a record for each generation of the group would tell nothing new."""
        if known is not None and (known.state, known.worker_id, known.trace) == (
            status.state,
            status.worker_id,
            status.trace,
        ):
            return
        if task is None:
            self._statuses.put_connector(name, status)
        else:
            self._statuses.put_task(name, task, status)

    def _publish_topics(self, names: Iterable[str]) -> None:
        if not self._tracks_topics:
            return
        now_ms = int(time.time() * 1000)
        for name in names:
            run = self._started[name].run
            if run is not None:
                for topic in sorted(set(run.topics()) - set(self._statuses.topics(name))):
                    self._statuses.put_topic(name, topic, 0, now_ms)


def _look(
    name: str, config: ConnectorConfig, known: _Started | None, state: TargetState | None
) -> ConnectorLook | None:
    if known is not None and known.run is not None:
        return known.run.look()
    if state in _STANDSTILLS:
        return _standing(name, config, _STANDSTILLS[state])
    if known is not None and known.trace is not None:
        return _standing(name, config, "failed", known.trace)
    return _standing(name, config, "starting")


def _standing(
    name: str, config: ConnectorConfig, standstill: Standstill, error: str | None = None
) -> StandingLook | None:
    """Return None for a connector that is none of MirrorMaker's."""
    kind = _kind(config)
    if kind is None:
        return None
    source, target = (config.get(f"{side}.cluster.alias") or side for side in ("source", "target"))
    return StandingLook(Flow(Alias(source), Alias(target)), ConnectorName(name), kind, error, standstill)


def _kind(config: ConnectorConfig) -> ConnectorKind | None:
    return _KINDS.get(config.get("connector.class", "").rpartition(".")[2].removesuffix("Connector"))


def _two_policies(difference: str) -> Trouble:
    word = TroubleWord.DIFFERS if is_harmless(difference) else TroubleWord.NOT_SYNCED
    remedy = "give both connectors the same replication.policy settings"
    return Trouble(Cause(word, Subject.ACTION, difference, remedy), "offsets of groups")


def _trace(run: ConnectorRun) -> str | None:
    """Return a line for each cause of troubles that require action, or None."""
    return "\n".join(trouble_lines(it for it in run.troubles() if it.requires_action)) or None
