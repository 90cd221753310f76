"""Finds the keys of mm2.properties and of connectors that nothing reads, with the most similar known key.

A key is known at the top level, below an alias, or below a flow; each place has other names. A name that is
known, but not in its place, is reported too: it has no effect, and MM2 never reports that.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from sparkmirror.config.admin_plugins import FORWARDING_ADMIN
from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER, SHARED_NAMES
from sparkmirror.config.connector_options import (
    CONNECTOR_NAMES,
    OWN,
    SOURCE_FRAMEWORK,
    USE_DEFAULTS_FROM,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE, nearest
from sparkmirror.config.former_keys import OF_BROKERS, REMOVED, RENAMED, is_broker_setting
from sparkmirror.config.metrics_options import METRICS
from sparkmirror.config.plugin_points import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
)
from sparkmirror.config.worker_options import MIRROR_MAKER, WORKER
from sparkmirror.domain.ids import Alias, Flow


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that nothing reads; `str()` is fit for a warning. `name` is the key without cluster or flow."""

    key: str
    nearest: str | None = None
    note: str | None = None
    name: str = ""

    def __str__(self) -> str:
        if self.note:
            return f"{self.key} ({self.note})"
        return f"{self.key} (did you mean {self.nearest}?)" if self.nearest else self.key


@dataclass(frozen=True, slots=True)
class Scope:
    """The known keys of one place: names, prefixes below which any key is allowed, names below a prefix."""

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


EXPLAINED_MAX: Final = 100
"""Finding a similar name takes a millisecond, and a config of the REST API may have 100,000 keys."""

CLIENT_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "consumer.": CONSUMER.names,
    "producer.": PRODUCER.names,
    "admin.": ADMIN.names,
}
_STORAGE: Final = ("offset.storage.", "status.storage.", "config.storage.")
TRANSFORMS: Final = ("transforms.", "predicates.")
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
    | METRICS.names
    | {name for name in WORKER.names if name.startswith(_PASSED_TO_WORKERS)},
    (*_STORAGE, *_PLUGINS, "listeners.https.", "spark."),
)
CLUSTER: Final = Scope(WORKER.names, (*_STORAGE, *_PLUGINS, "listeners.https."), CLIENT_NAMES)
WORKER_FILE: Final = replace(CLUSTER, names=CLUSTER.names | METRICS.names)
CONNECTOR: Final = Scope(
    CONNECTOR_NAMES | SOURCE_FRAMEWORK.names | OWN.names | {USE_DEFAULTS_FROM},
    (*_PLUGINS, *TRANSFORMS, "topic.creation."),
    {
        **CLIENT_NAMES,
        **{f"source.{client}": names for client, names in CLIENT_NAMES.items()},
        **{f"target.{client}": names for client, names in CLIENT_NAMES.items()},
        **{client.replace(".", ".override."): names for client, names in CLIENT_NAMES.items()},
        "source.cluster.": SHARED_NAMES,
        "target.cluster.": SHARED_NAMES,
    },
)


def unknown_keys(
    keys: Iterable[str], clusters: Iterable[Alias], enabled: Collection[Flow] = ()
) -> tuple[UnknownKey, ...]:
    """The keys of an mm2.properties that nothing reads, in its order. Hints prefer the `enabled` flows."""
    places = _places(tuple(clusters), enabled)
    return tuple(_explained(key, places) for key in keys if not _known(key, places))


def unknown_connector_keys(keys: Iterable[str]) -> tuple[UnknownKey, ...]:
    """The keys of one connector's config that nothing reads, the first `EXPLAINED_MAX` of them."""
    places = {"": CONNECTOR}
    unknown = (key for key in keys if not _known(key, places))
    return tuple(_explained(key, places) for key in islice(unknown, EXPLAINED_MAX))


def unknown_worker_keys(keys: Iterable[str]) -> tuple[UnknownKey, ...]:
    """The keys of a Connect worker's own properties that nothing reads."""
    places = {"": WORKER_FILE}
    return tuple(_explained(key, places) for key in keys if not _known(key, places))


def _places(clusters: tuple[Alias, ...], enabled: Collection[Flow]) -> dict[str, Scope]:
    flows = [Flow(source, target) for source in clusters for target in clusters if source != target]
    flows.sort(key=lambda flow: flow not in enabled)
    places = {f"{flow}.": CONNECTOR for flow in flows} | {f"{alias}.": CLUSTER for alias in clusters}
    return places | {"": TOP}


def _known(key: str, places: Mapping[str, Scope]) -> bool:
    return any(key.startswith(head) and scope.knows(key[len(head) :]) for head, scope in places.items())


def _explained(key: str, places: Mapping[str, Scope]) -> UnknownKey:
    head = next(place for place in places if key.startswith(place))
    name = key[len(head) :]
    if name in REMOVED:
        return UnknownKey(key, note=REMOVED[name], name=name)
    if name in RENAMED:
        successor, reason = RENAMED[name]
        return UnknownKey(key, head + successor, reason.format(head + successor), name)
    if is_broker_setting(name):
        return UnknownKey(key, note=OF_BROKERS, name=name)
    _, _, rest = key.partition(".")
    others = {place: scope for place, scope in places.items() if place}
    meant = rest if not head and _known(rest, others) else None
    return UnknownKey(key, meant or _elsewhere(name, head, places) or _similar(name, head, places), name=name)


def _elsewhere(name: str, head: str, places: Mapping[str, Scope]) -> str | None:
    """The key where this name is known: for a flow below its target, for a cluster below a client."""
    if head:
        scope = places[head]
        for client in CLIENT_NAMES:
            if scope.knows(client + name):
                return head + client + name
    return next((place + name for place in _nearby(head, places) if places[place].knows(name)), None)


def _nearby(head: str, places: Mapping[str, Scope]) -> list[str]:
    """The other places of a name: for a flow its target first, for a cluster the flows from and into it."""
    target = head.partition("->")[2]
    flows = [
        place
        for place in places
        if head and (place.endswith(f">{head}") or place.startswith(f"{head[:-1]}->"))
    ]
    return list(dict.fromkeys([*([target] if target else flows), *places]))


def _similar(name: str, head: str, places: Mapping[str, Scope]) -> str | None:
    if not head:
        return _of_another_cluster(name, places) or alike(name, places[""].all_names())
    near = (head, *(place for place in _nearby(head, places)[:1] if "->" in place))
    found = ((place, alike(name, places[place].all_names())) for place in near)
    return next((place + meant for place, meant in found if meant is not None), None)


def alike(name: str, names: Iterable[str]) -> str | None:
    """The name that has the same words, each perhaps misspelled, and one more or one less at most.

    A common tail, as `.replication.factor`, makes no likeness.
    """
    close = difflib.get_close_matches(name, sorted(names), n=5, cutoff=0.7)
    return next((each for each in close if _has_words_of(name, each)), None)


def _has_words_of(one: str, other: str) -> bool:
    words, others = re.split("[.-]", one), re.split("[.-]", other)
    missing = sorted((_without_like(words, others), _without_like(others, words)))
    return missing[0] == 0 and missing[1] <= 1


def _without_like(words: Sequence[str], others: Sequence[str]) -> int:
    return sum(not difflib.get_close_matches(word, others, n=1, cutoff=0.52) for word in words)


def _of_another_cluster(key: str, places: Mapping[str, Scope]) -> str | None:
    """The key for a misspelled alias or flow: the same below the most similar one that exists."""
    source, arrow, rest = key.rpartition("->")
    head, _, name = rest.partition(".")
    scope = CONNECTOR if arrow else CLUSTER
    there = [place for place, known in places.items() if place and known is scope]
    if not there or not scope.knows(name):
        return None
    return f"{nearest(f'{source}{arrow}{head}.', there, similarity=0)}{name}"


_USUAL = (".filter.", ".admin.", ".replication.policy.")
"""Parts of the keys that plug-ins usually have."""


def names_plugin(properties: Mapping[str, str]) -> bool:
    """Whether any setting names a plug-in class, at the top level or below a prefix."""
    points = (REPLICATION_POLICY, TOPIC_FILTER, GROUP_FILTER, CONFIG_PROPERTY_FILTER, FORWARDING_ADMIN)
    return any(
        f".{key}".endswith(f".{point.key}") and value.strip(JAVA_WHITESPACE) not in point.ours
        for key, value in properties.items()
        for point in points
    )


def unread(
    unknown: Iterable[UnknownKey], properties: Mapping[str, str], below: tuple[str, ...]
) -> tuple[UnknownKey, ...]:
    """The unknown keys that no plug-in can read either; those `below` these prefixes reach one."""
    if not names_plugin(properties):
        return tuple(unknown)
    return tuple(one for one in unknown if not (one.key.startswith(below) and _may_be_a_plugins(one)))


def unread_connector_keys(config: Mapping[str, str]) -> tuple[UnknownKey, ...]:
    """The keys of one connector's config that nothing reads, and no plug-in that it names."""
    return unread(unknown_connector_keys(config), config, ("",))


def _may_be_a_plugins(unknown: UnknownKey) -> bool:
    """Whether a key is more likely a plug-in's than a mistake: it resembles no known and no former key."""
    looks_known = unknown.nearest is not None or unknown.note is not None
    return not looks_known or (unknown.note is None and any(part in f".{unknown.key}" for part in _USUAL))
