"""Creates a connector's internal topics, each by itself, and creates again those that vanish while it runs.

A refused topic does not stop the flow, unless the flow can't begin without it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, NamedTuple

from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError, KafkaError, TopicExistsError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord, cause_line
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.kafka.wire.error_codes import INVALID_REPLICATION_FACTOR, NONE
from sparkmirror.periodic.denials import DENIED_AGAIN
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.periodic.jobs import Job
from sparkmirror.policies.admin_writes import AdminWrites
from sparkmirror.storage.events import EventKind
from sparkmirror.storage.troubles import Troubles

_WATCH_INTERVAL_S: Final = 10.0
_TRY_AGAIN: Final = Backoff(30.0, 300.0)
_POLICY: Final = "cleanup.policy"
_IN_SYNC: Final = "min.insync.replicas"
_BROKERS_DEFAULT: Final = -1


class OwnTopic(NamedTuple):
    """An internal topic and the cluster that it is on.

    `replicas_setting` is the option for its replication factor; `is_read`: the mirror reads it back;
    `is_needed`: no flow begins without. `takes_default`: where brokers can't give that factor, it gets their
    default, as Java has no such topic. `when_remade` says what it means that it has to be created again.
    """

    cluster: Alias
    creation: TopicCreation
    replicas_setting: str
    is_read: bool = True
    is_needed: bool = False
    takes_default: bool = False
    when_remade: str = ""
    unless: str = ""
    """The other way out where the right to create it is missing."""

    @property
    def name(self) -> str:
        return self.creation.name


class Ensured(NamedTuple):
    """Names of topics that were not there, and why those that still are not can't be created.

    `remade` were there before, and have been created again.
    """

    missing: frozenset[str] = frozenset()
    refused: Mapping[str, Trouble] = {}
    remade: frozenset[str] = frozenset()


class Unfit(NamedTuple):
    """An internal topic with other settings than needed, and the command that corrects it."""

    topic: OwnTopic
    why: str
    remedy: str
    can_be_written: bool = True

    def __str__(self) -> str:
        return f"{self.why}: {self.remedy}"


class OwnTopics:
    """The internal topics of a connector on one cluster. One owner; every method blocks."""

    def __init__(
        self,
        topics: Sequence[OwnTopic],
        admin: ConnectionSettings,
        plugins: AdminPlugins,
        log: FlowLog,
        troubles: Troubles,
    ) -> None:
        """`troubles` gets what can't be created or written, and an incident for each that had vanished."""
        self._topics = topics
        self._admin = admin
        self._plugins = plugins
        self._log = log
        self._troubles = troubles
        self._finder = ", ".join(topic.name for topic in topics)
        self._unfit = LogOnce(log)
        self._unwritable: Sequence[Trouble] = ()
        self._present: frozenset[str] = frozenset()
        self._tries = 0
        self._is_denied = False
        """Whether a right is missing to create them."""
        self._try_again_at = 0.0
        self.result = Ensured()
        """The result of the last call of `ensure`."""

    def lacks(self, topic: str) -> bool:
        """Whether the topic is not there and can't be created. Safe in any thread."""
        return topic in self.result.refused

    def watch(self, now: float) -> Ensured:
        """Look for those that vanished, and try what was refused again, less and less often.

        Raises as `ensure` does.
        """
        refused = self.result.refused
        if refused and now < self._try_again_at:
            return self._ensure([topic for topic in self._topics if topic.name not in refused])
        self._tries = self._tries + 1 if refused else 0
        again = DENIED_AGAIN if self._is_denied else _TRY_AGAIN
        self._try_again_at = now + again.delay_s(max(1, self._tries), 0.5)
        return self.ensure()

    def ensure(self) -> Ensured:
        """Create those that are missing. Raises KafkaError where that can't be asked.

        Raises the refusal, with its remedy, of a topic that is needed.
        """
        return self._ensure(self._topics)

    def _ensure(self, topics: Sequence[OwnTopic]) -> Ensured:
        if not topics:
            return self.result
        with closing(Admin(self._admin)) as admin:
            missing = missing_topics(admin, topics)
            results = _created(missing, self._plugins.over(admin, topics[0].cluster))
            known = {name: why for name, why in self.result.refused.items() if name not in _names(topics)}
            needed = _hopeless(missing, results)
            refused = known | {
                topic.name: _refusal(topic, error, admin)
                if needed is None or not _waits(topic, error)
                else _waiting(topic, needed)
                for topic in missing
                if (error := results[topic.name]) is not None
            }
            self._is_denied = any(isinstance(error, AuthorizationError) for error in results.values())
            before = self._present
            self._note_results(missing, refused, admin)
            # A topic that can't be written is checked again: the command may have been run.
            seen = frozenset[str]() if self._unwritable else before
            new = [topic for topic in topics if topic.name in self._present - seen]
            if new:
                self._note_unfit(unfit(admin, new))
            self._troubles.tell(self._finder, [*refused.values(), *self._unwritable])
        for topic in missing:
            error = results[topic.name]
            if error is not None and topic.is_needed:
                raise type(error)(cause_line([refused[topic.name]]), error.code)
        return self.result

    def _note_unfit(self, found: Sequence[Unfit]) -> None:
        self._unfit.log(str(each) for each in found if each.can_be_written)
        self._unwritable = [_unwritable(each) for each in found if not each.can_be_written]

    def _note_results(
        self, missing: Sequence[OwnTopic], refused: Mapping[str, Trouble], admin: Admin
    ) -> None:
        there = _names(self._topics) - refused.keys()
        vanished = [topic for topic in missing if topic.name in self._present]
        remade = [topic for topic in vanished if topic.name in there]
        for topic in missing:
            if topic.name in there and topic not in vanished:
                self._log.info("created %s on %s", topic.name, admin.cluster)
        for topic in remade:
            text = f"{topic.name} had vanished from {admin.cluster} and was created again"
            text = f"{text}: {topic.when_remade}" if topic.when_remade else text
            self._log.warning("%s", text)
            self._troubles.note(EventKind.INCIDENT, text, topic.cluster)
        self._present = there
        self.result = Ensured(_names(missing), refused, _names(remade))


def _names(topics: Iterable[OwnTopic]) -> frozenset[str]:
    return frozenset(topic.name for topic in topics)


def watching(watch: Callable[[], None]) -> Job:
    """The job of a connector that creates refused topics, when that is possible, and vanished ones."""
    return Job("watch own topics", _WATCH_INTERVAL_S, watch, _WATCH_INTERVAL_S)


def missing_topics(admin: Admin, topics: Sequence[OwnTopic]) -> Sequence[OwnTopic]:
    """Find those that are not there, as far as this principal may know. Raises KafkaError."""
    listed = admin.named([topic.name for topic in topics])
    return [topic for topic in topics if topic.name not in listed or listed[topic.name].error != NONE]


def _created(missing: Sequence[OwnTopic], writes: AdminWrites) -> Mapping[str, KafkaError | None]:
    """Return None for those that exist now."""
    results = _create([topic.creation for topic in missing], writes)
    few = [
        replace(topic.creation, replication_factor=_BROKERS_DEFAULT)
        for topic in missing
        if topic.takes_default and _lacks_brokers(results[topic.name])
    ]
    # Without positions nothing begins: the factor is put right for all of them.
    return results if _hopeless(missing, results) else {**results, **_create(few, writes)}


def _hopeless(missing: Sequence[OwnTopic], results: Mapping[str, KafkaError | None]) -> OwnTopic | None:
    """Return the topic without which no flow begins, if it can't be created."""
    needed = (topic for topic in missing if topic.is_needed and not topic.takes_default)
    return next((topic for topic in needed if results[topic.name]), None)


def _waits(topic: OwnTopic, error: KafkaError) -> bool:
    return topic.takes_default and _lacks_brokers(error)


def _waiting(topic: OwnTopic, needed: OwnTopic) -> Trouble:
    cause = Cause(TroubleWord.WAITING, Subject.STATE_TOPIC, f"it is created together with {needed.name}")
    return Trouble(cause, topic.name)


def _create(creations: Sequence[TopicCreation], writes: AdminWrites) -> Mapping[str, KafkaError | None]:
    results = writes.create_topics(creations) if creations else {}
    return {
        creation.name: None if isinstance(error := results[creation.name], TopicExistsError) else error
        for creation in creations
    }


def _lacks_brokers(error: KafkaError | None) -> bool:
    return error is not None and error.code == INVALID_REPLICATION_FACTOR


def _refusal(topic: OwnTopic, error: KafkaError, admin: Admin) -> Trouble:
    """Why a topic could not be created, and what to do."""
    reason, remedy = str(error), ""
    if isinstance(error, AuthorizationError):
        remedy = "give the right or create it by hand"
        remedy += f"; {topic.unless}" if topic.unless else ""
    elif _lacks_brokers(error):
        wanted, key = topic.creation.replication_factor, topic.replicas_setting
        keys = f"{key} of its worker ({topic.cluster}.{key} in mm2.properties)" if key in _OF_WORKER else key
        reason = f"{topic.name} can't have {wanted} replicas on {admin.cluster}"
        remedy = (
            f"set {keys} to what its brokers allow, or to -1 for their default; sparkmirror plan shows every "
            "such topic"
        )
    cause = Cause.of(TroubleWord.NOT_CREATED, Subject.STATE_TOPIC, topic.name, reason, remedy)
    return Trouble(cause, topic.name)


def _unwritable(found: Unfit) -> Trouble:
    name = found.topic.name
    return Trouble(
        Cause.of(TroubleWord.NOT_WRITTEN, Subject.STATE_TOPIC, name, found.why, found.remedy), name
    )


_OF_WORKER: Final = frozenset({"offset.storage.replication.factor"})


def unfit(admin: Admin, topics: Collection[OwnTopic]) -> Sequence[Unfit]:
    """Find such topics among those that exist, each with the command for it.

    A missing right to read configs is no finding. Raises KafkaError.
    """
    if not topics:
        return []
    names = [topic.name for topic in topics]
    described = admin.known_topic_configs(names, [_POLICY, _IN_SYNC]).configs
    listed, replicas = admin.named(names), admin.replication_factors(names)
    found: list[Unfit] = []
    for topic in topics:
        configs = {entry.name: entry.value or "" for entry in described.get(topic.name, ())}
        found += _bad_policy(admin, topic, configs.get(_POLICY))
        found += _bad_in_sync(admin, topic, configs.get(_IN_SYNC), replicas.get(topic.name))
        count = listed[topic.name].partitions if topic.name in listed else 1
        if topic.creation.partitions == 1 < count:
            found.append(
                Unfit(
                    topic,
                    f"{topic.name} on {admin.cluster} has {count} partitions instead of 1, and only the "
                    "first is used",
                    f"kafka-topics.sh --bootstrap-server {admin.bootstrap_servers} --delete --topic "
                    f"{topic.name} lets the mirror create it again",
                )
            )
    return found


def _bad_policy(admin: Admin, topic: OwnTopic, found: str | None) -> Iterable[Unfit]:
    wanted = topic.creation.configs.get(_POLICY)
    if found and wanted and {each.strip().lower() for each in found.split(",")} != {wanted}:
        why = f"{topic.name} on {admin.cluster} has {_POLICY}={found} instead of {wanted}"
        yield Unfit(topic, why, _alter(admin, topic, f"{_POLICY}={wanted}"))


def _bad_in_sync(admin: Admin, topic: OwnTopic, minimum: str | None, replicas: int | None) -> Iterable[Unfit]:
    if minimum and replicas and int(minimum) > replicas:
        why = (
            f"{topic.name} on {admin.cluster} can't be written to: {_IN_SYNC}={minimum}, and it has "
            f"{replicas} {'replica' if replicas == 1 else 'replicas'}"
        )
        yield Unfit(topic, why, _alter(admin, topic, f"{_IN_SYNC}={replicas}"), can_be_written=False)


def _alter(admin: Admin, topic: OwnTopic, config: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server {admin.bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {topic.name} --add-config {config}"
    )
