"""Serves the REST API's calls on one node of a Connect group.

The herder validates and stores connector configurations. It reads from the node's copy of the group's topics.
Only the leader's herder changes state: it writes to the config topic and reads the record back; the leader's
thread acts on it. Statuses and messages are Connect's.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

from sparkmirror.config.two_policies import TWO_POLICIES, difference_to_others
from sparkmirror.connect.connector_factory import ConnectorFactory, Prepared
from sparkmirror.connect.leader import Leader
from sparkmirror.connect.topics.config_records import ConnectConfigs
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.offset_records import copied_offsets, set_back
from sparkmirror.connect.topics.offsets_topic import read_connector_offsets, write_connector_offsets
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.connect.validation import Infos, invalid_config_message, validate_given, with_errors
from sparkmirror.connect.worker_file import WorkerFile, connector_warnings
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.connect import (
    ConnectError,
    ConnectorConfig,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Health,
    NotLeaderError,
    State,
    Status,
    TargetState,
)
from sparkmirror.domain.errors import ConfigError, KafkaError
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.leader_election import Membership
from sparkmirror.metrics.looks import VerifyLook
from sparkmirror.mirror.verifying import Verifying
from sparkmirror.plan.flow_plan_json import to_json

_log = logging.getLogger(__name__)

_STARTING = "Connect worker is still starting up, please try again later"
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
    "specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)

_STOPPING = "Connector {name} is still being stopped; try again later"
_STOP_POLL_S = 0.02


class NodeTopics(NamedTuple):
    """The group's topics as this node reads them."""

    configs: ConfigTopic
    statuses: StatusTopic
    offsets: str


class Herder:
    """Safe in any thread; no method blocks for longer than a request may take.

    Methods that read, except `offsets` and `plan`, use what the node has in memory: the server calls them on
    its event loop, where hundreds of polling clients cost no threads.

    Unknown names and refused changes raise ConnectError with Connect's own status and message. Methods that
    change state run on the leader: on other nodes they raise NotLeaderError, and the request is forwarded.
    """

    stopped_within_s = 10.0
    """The time a change of offsets waits for the end of a stop; cancelled tasks need about 7.5 s."""

    def __init__(
        self,
        file: WorkerFile,
        client: ConnectionSettings,
        topics: NodeTopics,
        leader: Leader,
        membership: Callable[[], Membership],
        connectors: ConnectorFactory,
    ) -> None:
        self._file = file
        self._client = client
        self._topics = topics
        self._leader = leader
        self._membership = membership
        self._connectors = connectors
        self._changing = threading.RLock()
        self.cluster_id: str | None = None
        """Set when the node has read its topics; until then it serves no request."""

    def health(self) -> Health:
        if self.cluster_id is None:
            return Health(started=False, healthy=False, message="Worker is still starting up.")
        if self._membership().leader_url is None:
            return Health(started=True, healthy=False, message="Worker knows of no leader in its group.")
        return Health(
            started=True,
            healthy=True,
            message="Worker has completed startup and is ready to handle requests.",
        )

    def kafka_cluster_id(self) -> str:
        if self.cluster_id is None:
            raise ConnectError(HTTPStatus.SERVICE_UNAVAILABLE, _STARTING)
        return self.cluster_id

    @property
    def leader_url(self) -> str | None:
        """The leader's URL; None while no leader is known."""
        return self._membership().leader_url

    # on any node

    def connectors(self) -> Sequence[str]:
        return sorted(self._configs.connectors)

    def info(self, name: str) -> ConnectorInfo:
        config = self._known(name)
        return ConnectorInfo(name, config, len(self._configs.task_configs.get(name, ())))

    def task_configs(self, name: str) -> Sequence[ConnectorConfig]:
        self._known(name)
        return self._configs.task_configs.get(name, ())

    def status(self, name: str) -> ConnectorStatus:
        self._require_started()
        connector = self._topics.statuses.connector(name)
        if connector is None:
            raise _not_found(f"No status found for connector {name}")
        return ConnectorStatus(name, connector, self._topics.statuses.tasks(name))

    def task_status(self, name: str, task: int) -> Status:
        self._require_started()
        status = self._topics.statuses.tasks(name).get(task)
        if status is None:
            raise _not_found(f"No status found for task {name}-{task}")
        return status

    def active_topics(self, name: str) -> Sequence[str]:
        self._require_started()
        return sorted(self._topics.statuses.topics(name))

    def offsets(self, name: str) -> Sequence[ConnectorOffset]:
        self._known(name)
        return copied_offsets(read_connector_offsets(self._client, self._topics.offsets, name))

    def set_log_level(self, logger: str, level: str) -> None:
        """Set the level on all nodes, also those that start later."""
        self._require_started()
        self._topics.configs.put_log_level(logger, level)

    def validate(self, plugin: str | None, config: Mapping[str, str | None]) -> Infos:
        """Validate as Connect does, and add errors that only show when the connector is prepared."""
        return self._validated(plugin, config)[0]

    # on the leader

    def create(self, name: str, config: ConnectorConfig, initial_state: TargetState | None) -> ConnectorInfo:
        with self._leading():
            if name in self._configs.connectors:
                raise ConnectError(HTTPStatus.CONFLICT, f"Connector {name} already exists")
            return self._put(name, config, initial_state)

    def put(self, name: str, config: ConnectorConfig) -> tuple[bool, ConnectorInfo]:
        """Return whether the connector was created, and its present state."""
        with self._leading():
            created = name not in self._configs.connectors
            return created, self._put(name, config, None)

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        with self._leading():
            merged = {**self._known(name), **changes}
            kept = {key: value for key, value in merged.items() if value is not None}
            return self._put(name, kept, None)

    def delete(self, name: str) -> None:
        with self._leading():
            self._known(name)
            self._topics.configs.remove_connector(name)

    def change_state(self, name: str, state: TargetState) -> None:
        with self._leading():
            if name not in self._configs.connectors:
                raise _not_found(f"Unknown connector {name}")
            self._topics.configs.put_target_state(name, state)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """A connector and its tasks restart together here, if the request restarts any of them."""
        with self._leading():
            if name not in self._configs.connectors:
                raise _not_found(f"Unknown connector: {name}")
            status = self.status(name)
            planned = _restart_plan(status, include_tasks=include_tasks, only_failed=only_failed)
            if State.RESTARTING in {each.state for each in (planned.connector, *planned.tasks.values())}:
                self._leader.restart(name)
            return planned

    def note(self, name: str, text: str) -> None:
        """Add to the connector's events; to those of its next run if it does not run now."""
        with self._leading():
            if name in self._configs.connectors:
                self._leader.note(name, text)

    def restart_task(self, name: str, task: int) -> None:
        with self._leading():
            if name not in self._configs.connectors:
                raise _not_found(f"Unknown connector: {name}")
            if task >= len(self._configs.task_configs.get(name, ())):
                raise _not_found(f"Unknown task: {name}-{task}")
            self._leader.restart(name)

    def reset_active_topics(self, name: str) -> None:
        with self._leading():
            self._topics.statuses.remove_topics(name)

    def alter_offsets(self, name: str, offsets: Sequence[ConnectorOffset]) -> None:
        with self._stopped(name) as config:
            known = read_connector_offsets(self._client, self._topics.offsets, name) if offsets else ()
            self._write_offsets(name, config, known, offsets)

    def reset_offsets(self, name: str) -> None:
        with self._stopped(name) as config:
            known = read_connector_offsets(self._client, self._topics.offsets, name)
            removed = [ConnectorOffset(offset.partition, None) for offset in known]
            self._write_offsets(name, config, known, removed)

    def _write_offsets(
        self,
        name: str,
        config: ConnectorConfig,
        known: Sequence[ConnectorOffset],
        offsets: Sequence[ConnectorOffset],
    ) -> None:
        kind = config["connector.class"]
        write_connector_offsets(self._client, self._topics.offsets, name, kind, offsets)
        if kind.endswith("MirrorSourceConnector") and (text := set_back(known, offsets)) is not None:
            _log.warning("%s: %s", name, text)
            self._leader.note(name, text)

    def plan(self, name: str) -> Mapping[str, Any]:
        """Return the plan of a source connector as JSON. Reads from both of its clusters."""
        with self._leading():
            config = self._known(name)
        try:
            plan = self._connectors.plan(config)
            differences = difference_to_others(config, self._others(name))
            notes = [Finding(TWO_POLICIES, Severity.WARNS, name, text) for text in differences]
            return to_json(replace(plan, findings=(*plan.findings, *notes)))
        except ConfigError as error:
            raise ConnectError(HTTPStatus.BAD_REQUEST, f"Connector {name} has no plan: {error}") from error
        except KafkaError as error:
            raise ConnectError(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from error

    def verify(self, name: str) -> None:
        """Begin to compare what a source connector has copied. ConnectError (409) while a comparison runs."""
        if not self._verifying(name).start():
            raise ConnectError(HTTPStatus.CONFLICT, f"Connector {name} is being verified already")

    def verification(self, name: str) -> VerifyLook | None:
        """The running comparison, or the last one of this run of the connector."""
        return self._verifying(name).look()

    # steps of the above

    def _validated(
        self, plugin: str | None, config: Mapping[str, str | None]
    ) -> tuple[Infos, Prepared | None]:
        """Return the infos and the parsed connector; the connector is None if the config has errors."""
        given = self._connectors.given(config)
        infos = validate_given(plugin, given, self._file.properties)
        if infos["error_count"]:
            return infos, None
        try:
            return infos, self._connectors.prepared(given.properties)
        except ConfigError as error:
            return with_errors(infos, error), None

    def _verifying(self, name: str) -> Verifying:
        with self._leading():
            self._known(name)
            found = self._leader.verifying(name)
        if found is None:
            text = f"Connector {name} can't be verified: it does not run, or is no MirrorSourceConnector"
            raise ConnectError(HTTPStatus.CONFLICT, text)
        return found

    @property
    def _configs(self) -> ConnectConfigs:
        self._require_started()
        return self._topics.configs.configs

    def _require_started(self) -> None:
        self.kafka_cluster_id()

    def _leading(self) -> threading.RLock:
        """Serialize changes, so that each sees the one before. Raises NotLeaderError."""
        self._require_started()
        now = self._membership()
        if not now.is_leader:
            raise NotLeaderError(now.leader_url)
        return self._changing

    def _others(self, name: str) -> Sequence[ConnectorConfig]:
        return [config for other, config in self._configs.connectors.items() if other != name]

    def _known(self, name: str) -> ConnectorConfig:
        config = self._configs.connectors.get(name)
        if config is None:
            raise _not_found(f"Connector {name} not found")
        return config

    def _put(self, name: str, config: ConnectorConfig, initial_state: TargetState | None) -> ConnectorInfo:
        whole = {**config, "name": name}
        infos, prepared = self._validated(None, whole)
        if prepared is None:
            raise ConnectError(HTTPStatus.BAD_REQUEST, invalid_config_message(infos))
        pairs = difference_to_others(whole, self._others(name))
        for warning in (*connector_warnings(whole, self._file.properties), *pairs):
            _log.warning("%s: %s", name, warning)
        self._leader.offer(name, whole, prepared)
        self._topics.configs.put_connector(name, whole, initial_state)
        return self.info(name)

    @contextmanager
    def _stopped(self, name: str) -> Iterator[ConnectorConfig]:
        """Keep a stopped connector from changing; wait for the end of a stop that was requested."""
        deadline = time.monotonic() + self.stopped_within_s
        while True:
            with self._leading():
                config = self._known(name)
                if self._configs.target_states[name] is not TargetState.STOPPED:
                    raise ConnectError(HTTPStatus.BAD_REQUEST, _NOT_STOPPED.format(name=name))
                if self._leader.has_ended(name) and not self._configs.task_configs.get(name, ()):
                    yield config
                    return
            if time.monotonic() > deadline:
                raise ConnectError(HTTPStatus.CONFLICT, _STOPPING.format(name=name))
            time.sleep(_STOP_POLL_S)


def _restart_plan(status: ConnectorStatus, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
    """The status in which the instances that the request restarts are RESTARTING (KIP-745)."""

    def after(known: Status, *, is_included: bool) -> Status:
        if not is_included or (only_failed and known.state is not State.FAILED):
            return known
        return Status(State.RESTARTING, known.worker_id, known.generation)

    tasks = {task: after(known, is_included=include_tasks) for task, known in status.tasks.items()}
    return ConnectorStatus(status.name, after(status.connector, is_included=True), tasks)


def _not_found(message: str) -> ConnectError:
    return ConnectError(HTTPStatus.NOT_FOUND, message)
