"""Which keys of mm2.properties anything reads, and what somebody who wrote another one most likely meant.

A key is known at the top level, below an alias, or below a flow; each place knows other names. A name that is
known, but not where it stands, is reported too: it would have no effect, which MM2 never says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER, SHARED_NAMES
from sparkmirror.config.connector_options import (
    CONNECTOR_NAMES,
    OWN,
    SOURCE_FRAMEWORK,
    USE_DEFAULTS_FROM,
)
from sparkmirror.config.definitions import nearest
from sparkmirror.config.worker_options import MIRROR_MAKER, WORKER
from sparkmirror.domain.ids import Alias, Flow

_EXCLUDE: Final = "called {} since Kafka 2.7, and no longer read under this name"
_LISTENERS: Final = "removed in Kafka 3.0, {} replaces it"
_MIRROR_MAKER_1: Final = "of MirrorMaker 1; here it is {}"
_STRIMZI: Final = "of a Strimzi resource; here it is {}"
_SINK: Final = "of Connect's sinks; {} takes regular expressions"

RENAMED: Final = {
    "topics.blacklist": ("topics.exclude", _EXCLUDE),
    "groups.blacklist": ("groups.exclude", _EXCLUDE),
    "config.properties.blacklist": ("config.properties.exclude", _EXCLUDE),
    "topics.whitelist": ("topics", "MirrorMaker 2 calls it {}"),
    "groups.whitelist": ("groups", "MirrorMaker 2 calls it {}"),
    "blacklist": ("topics.exclude", _MIRROR_MAKER_1 + ", and config.properties.exclude for configs"),
    "whitelist": ("topics", _MIRROR_MAKER_1),
    "num.streams": ("tasks.max", _MIRROR_MAKER_1),
    "topicsPattern": ("topics", _STRIMZI),
    "topicsExcludePattern": ("topics.exclude", _STRIMZI),
    "topicsBlacklistPattern": ("topics.exclude", _STRIMZI),
    "groupsPattern": ("groups", _STRIMZI),
    "groupsExcludePattern": ("groups.exclude", _STRIMZI),
    "groupsBlacklistPattern": ("groups.exclude", _STRIMZI),
    "topics.regex": ("topics", _SINK),
    "rest.host.name": ("listeners", _LISTENERS),
    "rest.port": ("listeners", _LISTENERS),
}
"""Names that once, or elsewhere, mean what another one means here, and why (KIP-629, KIP-208)."""

REMOVED: Final = {
    "use.incremental.alter.configs": "removed in Kafka 4.0, incremental alteration is always required",
    "add.source.alias.to.metrics": "removed in Kafka 4.0, the alias is always there",
    "auto.include.jmx.reporter": "removed in Kafka 4.0",
    "internal.key.converter": "removed in Kafka 3.0",
    "internal.value.converter": "removed in Kafka 3.0",
    "internal.key.converter.schemas.enable": "removed in Kafka 3.0",
    "internal.value.converter.schemas.enable": "removed in Kafka 3.0",
}


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that nothing reads; `str()` is fit for a warning."""

    key: str
    nearest: str | None = None
    note: str | None = None

    def __str__(self) -> str:
        if self.note:
            return f"{self.key} ({self.note})"
        return f"{self.key} (did you mean {self.nearest}?)" if self.nearest else self.key


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known in one place: names, prefixes below which all is free, and names below a prefix."""

    names: frozenset[str]
    free: tuple[str, ...] = ()
    nested: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def knows(self, key: str) -> bool:
        return (
            key in self.names
            or key.startswith(self.free)
            or any(key.startswith(head) and key[len(head) :] in names for head, names in self.nested.items())
        )

    def all_names(self) -> Iterable[str]:
        yield from self.names
        for head, names in self.nested.items():
            yield from (head + name for name in names)


_CLIENTS: Final = {"consumer.": CONSUMER.names, "producer.": PRODUCER.names, "admin.": ADMIN.names}
_STORAGE: Final = ("offset.storage.", "status.storage.", "config.storage.")
_PLUGINS: Final = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "replication.policy.",
    "config.providers.",
    "metrics.context.",
)
_PASSED_TO_WORKERS: Final = ("offset.storage", "status.storage", "config.storage", "task", "worker")

TOP: Final = Scope(
    MIRROR_MAKER.names
    | CONNECTOR_NAMES
    | OWN.names
    | SHARED_NAMES
    | {name for name in WORKER.names if name.startswith(_PASSED_TO_WORKERS)},
    (*_STORAGE, *_PLUGINS, "listeners.https.", "spark."),
)
CLUSTER: Final = Scope(WORKER.names, (*_STORAGE, *_PLUGINS, "listeners.https."), _CLIENTS)
CONNECTOR: Final = Scope(
    CONNECTOR_NAMES | SOURCE_FRAMEWORK.names | OWN.names | {USE_DEFAULTS_FROM},
    (*_PLUGINS, "transforms.", "predicates.", "topic.creation."),
    {
        **_CLIENTS,
        **{f"source.{client}": names for client, names in _CLIENTS.items()},
        **{f"target.{client}": names for client, names in _CLIENTS.items()},
        **{client.replace(".", ".override."): names for client, names in _CLIENTS.items()},
        "source.cluster.": SHARED_NAMES,
        "target.cluster.": SHARED_NAMES,
    },
)


def unknown_keys(keys: Iterable[str], clusters: Iterable[Alias]) -> tuple[UnknownKey, ...]:
    """The keys of an mm2.properties that nothing reads, in the file's order."""
    places = _places(tuple(clusters))
    return tuple(_explained(key, places) for key in keys if not _known(key, places))


def unknown_connector_keys(keys: Iterable[str]) -> tuple[UnknownKey, ...]:
    """The keys of one connector's config that nothing reads."""
    places = {"": CONNECTOR}
    return tuple(_explained(key, places) for key in keys if not _known(key, places))


def unknown_worker_keys(keys: Iterable[str]) -> tuple[UnknownKey, ...]:
    """The keys of a Connect worker's own properties that nothing reads."""
    places = {"": CLUSTER}
    return tuple(_explained(key, places) for key in keys if not _known(key, places))


def _places(clusters: tuple[Alias, ...]) -> dict[str, Scope]:
    flows = [Flow(source, target) for source in clusters for target in clusters if source != target]
    places = {f"{flow}.": CONNECTOR for flow in flows} | {f"{alias}.": CLUSTER for alias in clusters}
    return places | {"": TOP}


def _known(key: str, places: Mapping[str, Scope]) -> bool:
    return any(key.startswith(head) and scope.knows(key[len(head) :]) for head, scope in places.items())


def _explained(key: str, places: Mapping[str, Scope]) -> UnknownKey:
    head = next(place for place in places if key.startswith(place))
    name = key[len(head) :]
    if name in REMOVED:
        return UnknownKey(key, note=REMOVED[name])
    if name in RENAMED:
        successor, reason = RENAMED[name]
        return UnknownKey(key, head + successor, reason.format(head + successor))
    meant = _elsewhere(name, head, places) or _similar(name, head, places)
    return UnknownKey(key, meant)


def _elsewhere(name: str, head: str, places: Mapping[str, Scope]) -> str | None:
    """The place where this very name is known; below the target for a flow, below a client for a cluster."""
    if head:
        scope = places[head]
        for client in _CLIENTS:
            if scope.knows(client + name):
                return head + client + name
    target = head.partition("->")[2]
    candidates = (target, *places) if target else places
    return next((place + name for place in candidates if places[place].knows(name)), None)


def _similar(name: str, head: str, places: Mapping[str, Scope]) -> str | None:
    if not head:
        return _of_another_cluster(name, places) or nearest(name, places[""].all_names())
    found = nearest(name, places[head].all_names())
    return None if found is None else head + found


def _of_another_cluster(key: str, places: Mapping[str, Scope]) -> str | None:
    """For a key below an alias or a flow that isn't there: the same below the most similar one that is."""
    source, arrow, rest = key.rpartition("->")
    head, _, name = rest.partition(".")
    scope = CONNECTOR if arrow else CLUSTER
    there = [place for place, known in places.items() if place and known is scope]
    if not there or not scope.knows(name):
        return None
    return f"{nearest(f'{source}{arrow}{head}.', there, similarity=0)}{name}"
