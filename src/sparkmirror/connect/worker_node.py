"""Runs one node of a Connect group: follows the group's topics, joins the group, leads it when elected."""

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sparkmirror.config.client_layers import worker_client
from sparkmirror.config.worker_settings import InternalTopic
from sparkmirror.connect.connector_factory import ConnectorFactory
from sparkmirror.connect.connector_parser import ConnectorParser
from sparkmirror.connect.herder import Herder, NodeTopics
from sparkmirror.connect.leader import Leader
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.topics.config_records import ConnectConfigs, SessionKey
from sparkmirror.connect.topics.config_topic import ConfigTopic
from sparkmirror.connect.topics.status_topic import StatusTopic
from sparkmirror.connect.topics.topic_checks import check_connect_topics
from sparkmirror.connect.worker_file import WorkerFile
from sparkmirror.domain.assignment import slots_share
from sparkmirror.domain.condition_timer import ConditionTimer
from sparkmirror.domain.connect import ConnectError, NotLeaderError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.leader_election import Membership
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.cluster import read_metadata
from sparkmirror.kafka.groups.worker_group import WorkerGroup
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.readings import ConnectorReading, NodeReading
from sparkmirror.periodic.flow_log import LogOnce
from sparkmirror.periodic.jobs import persist
from sparkmirror.spark.session import Session
from sparkmirror.spark.spark_on_demand import SparkOnDemand
from sparkmirror.storage.topic_creation import (
    ensure_topics,
)

_log = logging.getLogger(__name__)

_SLOTS: Final = 256
"""The slots of a local session: threads that wait, so that connectors can be added without a restart."""
_RECONCILE_INTERVAL_S: Final = 1.0
_READ_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 1.0
_JOIN_TIMEOUT_S: Final = 1.0
_SESSION_KEY_BYTES: Final = 32
_SESSION_KEY_ALGORITHM: Final = "HmacSHA256"


class SameUrl:
    """Finds that two workers of a group have one URL for longer than a killed one stays a member."""

    def __init__(self, url: str, passes_s: float) -> None:
        self._url = url
        self._passes_s = passes_s
        self._held = ConditionTimer()

    def trouble(self, members: Sequence[str], now: float) -> str | None:
        if self._held.for_s(now, holds=members.count(self._url) > 1) <= self._passes_s:
            return None
        return (
            f"another worker of the group is advertised as {self._url} too, so requests for one reach the "
            "other; give each a rest.advertised.host.name or rest.advertised.port of its own"
        )


class WorkerNode:
    """`start` returns at once, `wait` when `stop` was called; `close` ends everything."""

    def __init__(self, file: WorkerFile, url: str, spark_log: Path, levels: LogLevels) -> None:
        """`url` is this node's URL for the other nodes."""
        self._file = file
        self._url = SameUrl(url, 2 * file.settings.session_timeout_s)
        self._levels = levels
        settings = file.settings
        self._client = worker_client(file.properties, "offsets")
        self._configs = ConfigTopic(worker_client(file.properties, "configs"), settings.config_topic.name)
        self._statuses = StatusTopic(worker_client(file.properties, "statuses"), settings.status_topic.name)
        self._spark = SparkOnDemand.own(file.spark, _SLOTS, spark_log)
        self._spark.page = f"{url.rstrip('/')}/ui/"
        parser = ConnectorParser(file.properties, settings, os.environ)
        factory = ConnectorFactory(parser, self._spark.session, self._slots_of)
        self._leader = Leader(
            factory.prepared_again,
            self._configs,
            self._statuses,
            worker_id(url),
            lambda: self._membership.is_leader,
            tracks_topics=settings.topic_tracking,
        )
        self._group = WorkerGroup(
            worker_client(file.properties, "group"), settings.group(), url, lambda _: self._wake()
        )
        self.herder = Herder(
            file,
            self._client,
            NodeTopics(self._configs, self._statuses, settings.offset_topic.name),
            self._leader,
            lambda: self._membership,
            factory,
        )
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._failure: SparkmirrorError | None = None
        self.turns = 0
        """Counts the turns of the node's own thread: one that hangs makes none."""
        self._seen_configs: ConnectConfigs | None = None
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for name, target in (
                ("worker", self._run),
                ("config topic", self._follow_configs),
                ("status topic", self._follow_statuses),
            )
        ]

    def start(self) -> None:
        """Start in the background; unreachable clusters are retried."""
        self._threads[0].start()

    def wait(self, each_second: Callable[[], None] = lambda: None) -> None:
        """Raises SparkmirrorError when the node can't continue: the group refused it, or Spark has ended."""
        troubles = LogOnce(_log)
        while not self._stopping.wait(_POLL_S):
            trouble = self._group.trouble
            same = self._url.trouble(self._membership.members, time.monotonic())
            troubles.log([str(it) for it in (trouble, same) if it is not None])
            failure = self._failure or self._group.failure or self._spark.failure
            if failure is not None:
                raise failure
            each_second()

    def stop(self) -> None:
        """Make `wait` return. Safe in a signal handler."""
        self._stopping.set()

    def close(self) -> None:
        """Stop every connector in order, leave the group, end Spark: within about ten seconds."""
        self._stopping.set()
        self._wake()
        self._spark.cancel_start()
        self._threads[0].join()
        self._spark.close()  # which takes as long as the others need to end
        for thread in self._threads[1:]:
            if thread.is_alive():
                thread.join(_JOIN_TIMEOUT_S)
        self._configs.close()
        self._statuses.close()

    def readings(self) -> list[ConnectorReading]:
        """The metrics of the connectors that run here."""
        return self._leader.readings()

    def node_reading(self) -> NodeReading:
        """The node itself, for its metrics. Safe in any thread."""
        now = self._membership
        return NodeReading(
            self._file.properties.get("client.id") or "connect-1",
            now.leader_url,
            is_leader=now.is_leader,
            is_rebalancing=now.leader_url is None,
            jvm=self._spark.jvm(),
        )

    def looks(self) -> list[ConnectorLook]:
        """Return the state of the group's connectors. Raises NotLeaderError: only the leader runs them."""
        now = self._membership
        if not now.is_leader:
            raise NotLeaderError(now.leader_url)
        return self._leader.looks()

    def node_urls(self) -> Sequence[str]:
        """Return the URLs of the group's nodes, the leader first."""
        now = self._membership
        return sorted(now.members, key=lambda url: (url != now.leader_url, url))

    @property
    def _membership(self) -> Membership:
        return self._group.membership

    def _wake(self) -> None:
        self._woken.set()

    def _slots_of(self, tasks_max: int, session: Session) -> int:
        return slots_share(tasks_max, max(tasks_max, self._leader.slots_of_all()), session.slots)

    # the node's own thread

    def _run(self) -> None:
        try:
            persist(self._prepare, self._stopping, _log, gives_up=lambda error: not error.retriable)
            self._lead_when_elected()
        except SparkmirrorError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 - after any error another node must be able to take over
            _log.exception("worker failed")
            self._failure = SparkmirrorError(f"worker failed: {error!r}")
        finally:
            self._leader.stop_all()
            self._group.leave()

    def _prepare(self) -> None:
        """Create or check the group's topics and read them, before any request is served."""
        self.turns += 1
        settings = self._file.settings
        cluster_id = read_metadata(self._client, ()).cluster_id
        admin = Admin(self._client)
        try:
            topics = (settings.config_topic, settings.offset_topic, settings.status_topic)
            ensure_topics(admin, [_creation(topic) for topic in topics])
            check_connect_topics(admin, settings)
        finally:
            admin.close()
        self._configs.read_to_end(_READ_TIMEOUT_S)
        self._statuses.read_to_end(_READ_TIMEOUT_S)
        self._group.start()
        if settings.standby_session:
            self._spark.stand_by()
        self.herder.cluster_id = cluster_id
        for thread in self._threads[1:]:
            thread.start()
        _log.info("worker is ready: %d connectors", len(self._configs.configs.connectors))

    def _lead_when_elected(self) -> None:
        led, next_reconcile_at = False, 0.0
        while not self._stopping.is_set():
            self.turns += 1
            is_due = time.monotonic() >= next_reconcile_at
            if is_due:
                next_reconcile_at = time.monotonic() + _RECONCILE_INTERVAL_S
            now = self._membership
            if now.is_leader != led:
                led = self._take_over() if now.is_leader else self._step_down()
            if led:
                self._attempt(partial(self._reconcile, whole=is_due))
            self._woken.wait(max(0.0, next_reconcile_at - time.monotonic()))
            self._woken.clear()
        if led:
            self._leader.stop_all()
            self._attempt(lambda: self._leader.unassign(self._membership.generation))

    def _take_over(self) -> bool:
        """Return whether all records of the previous leader have been read."""
        _log.info("group %s: this worker is the leader now", self._file.settings.group_id)
        self._spark.session()  # needed soon
        return self._attempt(lambda: self._configs.read_to_end(_READ_TIMEOUT_S))

    def _step_down(self) -> bool:
        _log.warning(
            "group %s: this worker is no longer the leader; its connectors stop", self._file.settings.group_id
        )
        self._leader.stop_all()
        return False

    def _reconcile(self, *, whole: bool) -> None:
        self._renew_session_key()
        self._leader.reconcile(self._membership.generation, whole=whole)

    def _renew_session_key(self) -> None:
        known, now_ms = self._configs.configs.session_key, int(time.time() * 1000)
        ttl_ms = self._file.settings.session_key_ttl_s * 1000
        if known is None or (ttl_ms > 0 and known.created_ms + ttl_ms <= now_ms):
            self._configs.put_session_key(
                SessionKey(secrets.token_bytes(_SESSION_KEY_BYTES), _SESSION_KEY_ALGORITHM, now_ms)
            )

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Return whether the action succeeded; the next turn retries it."""
        try:
            action()
        except SparkmirrorError as error:
            _log.warning("%s; retrying", error)
            return False
        return True

    # followers of the topics

    def _follow_configs(self) -> None:
        self._follow(self._take_config_events)

    def _follow_statuses(self) -> None:
        self._follow(lambda: self._statuses.poll(_POLL_S))

    def _take_config_events(self) -> None:
        for level in self._configs.poll(_POLL_S):
            try:
                self._levels.set(level.logger, level.level)
            except (ConnectError, KeyError) as error:
                _log.warning("a level of the config topic is not set: %s", error)
        if self._configs.configs is not self._seen_configs:
            self._seen_configs = self._configs.configs
            self._wake()

    def _follow(self, poll: Callable[[], None]) -> None:
        cut_off = False
        while not self._stopping.is_set():
            try:
                poll()
            except SparkmirrorError as error:
                if not cut_off:
                    _log.warning("%s; retrying", error)
                cut_off = True
                self._stopping.wait(_POLL_S)
            else:
                cut_off = False


def worker_id(url: str) -> str:
    """Connect's id of a node in statuses: `host:port`."""
    return url.partition("://")[2].rstrip("/")


def _creation(topic: InternalTopic) -> TopicCreation:
    return TopicCreation(topic.name, topic.partitions, topic.replication_factor, dict(topic.configs))
