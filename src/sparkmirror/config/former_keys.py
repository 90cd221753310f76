"""Lists keys of former versions and of other tools, and judges those that once left something out. Pure.

Java up to 3.9 reads `topics.blacklist` and its kin as `topics.exclude`; Kafka 4 does not, so that what was
left out is mirrored. Neither reading is taken without a word.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    MIRROR_CHECKPOINT,
    MIRROR_PACKAGE,
    MIRROR_SOURCE,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE, Option
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError, InvalidConfigError

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
"""Old names, and names of other tools, with the option of today and the reason (KIP-629, KIP-208)."""

REMOVED: Final = {
    "use.incremental.alter.configs": "removed in Kafka 4.0, incremental alteration is always required",
    "add.source.alias.to.metrics": "removed in Kafka 4.0, the alias is always there",
    "auto.include.jmx.reporter": "removed in Kafka 4.0",
    "internal.key.converter": "removed in Kafka 3.0",
    "internal.value.converter": "removed in Kafka 3.0",
    "internal.key.converter.schemas.enable": "removed in Kafka 3.0",
    "internal.value.converter.schemas.enable": "removed in Kafka 3.0",
}

OF_BROKERS: Final = "a setting of brokers, which a mirror does not have"
_BROKER_SETTINGS: Final = frozenset(
    {
        "auto.create.topics.enable",
        "auto.leader.rebalance.enable",
        "default.replication.factor",
        "delete.topic.enable",
        "message.max.bytes",
        "min.insync.replicas",
        "node.id",
        "num.io.threads",
        "num.network.threads",
        "num.partitions",
        "process.roles",
        "unclean.leader.election.enable",
    }
)
_BROKER_PREFIXES: Final = (
    "broker.",
    "controller.",
    "group.initial.",
    "inter.broker.",
    "log.",
    "offsets.topic.",
    "replica.",
    "socket.request.",
    "transaction.state.log.",
    "zookeeper.",
)


def is_broker_setting(name: str) -> bool:
    return name in _BROKER_SETTINGS or name.startswith(_BROKER_PREFIXES)


class _List(NamedTuple):
    """A list that had another name: its option, the filter that reads it, and what it leaves out."""

    option: Option
    filter_key: str
    names: str


FORMER_LISTS: Final = {
    "topics.blacklist": _List(MIRROR_SOURCE["topics.exclude"], "topic.filter.class", "topics"),
    "groups.blacklist": _List(MIRROR_CHECKPOINT["groups.exclude"], "group.filter.class", "groups"),
    "config.properties.blacklist": _List(
        MIRROR_SOURCE["config.properties.exclude"], "config.property.filter.class", "topic configs"
    ),
}
"""The lists that MM2 read under both names from 2.7 to 3.9 (KIP-629)."""

_OF_CONNECTOR: Final = {
    SOURCE_CONNECTOR: ("topics.blacklist", "config.properties.blacklist"),
    CHECKPOINT_CONNECTOR: ("topics.blacklist", "groups.blacklist"),
}


class Effect(Enum):
    """The consequence of a former key that is not read."""

    NONE = "the current key has the same value"
    OVERRIDDEN = "the current key has another value, which counts in each version of Java"
    LOST = "more is mirrored"


def effect_of(key: str, connector: Properties) -> Effect:
    """Compare a former key of a connector's settings with the current one."""
    option = FORMER_LISTS[key].option
    default = option.default
    now = option.parse_type(connector[option.name]) if option.name in connector else default
    assert isinstance(now, tuple)
    before = option.parse_type(connector[key])
    assert isinstance(before, tuple)
    if set(before) == set(now):
        return Effect.NONE
    return Effect.OVERRIDDEN if option.name in connector else Effect.LOST


def check_selection(connector: Properties, connector_class: str) -> None:
    """Raises InvalidConfigError for former keys without which the connector selects more than with them."""
    errors = list(_lost(connector, connector_class))
    if errors:
        raise InvalidConfigError(errors)


def _lost(connector: Properties, connector_class: str) -> Iterator[ConfigError]:
    for key in _OF_CONNECTOR.get(connector_class, ()):
        if key not in connector or effect_of(key, connector) is not Effect.LOST:
            continue
        option, filter_key, names = FORMER_LISTS[key]
        if not connector.get(filter_key, MIRROR_PACKAGE).strip(JAVA_WHITESPACE).startswith(MIRROR_PACKAGE):
            continue  # a plug-in may read it
        current = connector.origin(key).removesuffix(key) + option.name
        reason = (
            f"is called {current} since Kafka 2.7: Java up to 3.9 leaves out the {names} that it lists, "
            f"Kafka 4 does not. Call it {current} to leave them out, or delete it to mirror them"
        )
        yield connector.refusal(key, reason)
