"""Models a MirrorMaker 2 configuration of any form: flows, their connectors, the workers' settings.

The connectors' settings are named as Connect's REST API takes them, the greatest thing that all forms share.
Placeholders stay placeholders: nothing here resolves one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from sparkmirror.config.client_options import SECURITY, SHARED_NAMES
from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    MIRROR_CHECKPOINT,
    MIRROR_HEARTBEAT,
    MIRROR_SOURCE,
    OWN_CHECKPOINT,
    OWN_HEARTBEAT,
    OWN_SOURCE,
    SOURCE_CONNECTOR,
    SOURCE_FRAMEWORK,
    USE_DEFAULTS_FROM,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE, Definition
from sparkmirror.config.former_keys import FORMER_LISTS, check_selection
from sparkmirror.config.mirror_maker import BYTE_ARRAY_CONVERTER
from sparkmirror.config.plugin_points import CONFIG_PROPERTY_FILTER, GROUP_FILTER, TOPIC_FILTER, PluginPoint
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import WORKER
from sparkmirror.domain.ids import Flow

CLIENTS: Final = ("producer", "consumer", "admin")
SIDES: Final = ("source", "target")
CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
OFFSETS_TOPIC: Final = "offset.storage.topic"
PROVIDERS: Final = "config.providers"


class Kind(Enum):
    """The three connectors, in the order in which MM2 makes them; `short` is their usual abbreviation."""

    SOURCE = (SOURCE_CONNECTOR, "msc")
    HEARTBEAT = (HEARTBEAT_CONNECTOR, "hbc")
    CHECKPOINT = (CHECKPOINT_CONNECTOR, "cpc")

    def __init__(self, connector_class: str, short: str) -> None:
        self.connector_class = connector_class
        self.short = short

    @property
    def simple_name(self) -> str:
        return self.connector_class.rpartition(".")[2]


_NAMES: Final = {
    Kind.SOURCE: MIRROR_SOURCE.names | OWN_SOURCE.names | {USE_DEFAULTS_FROM},
    Kind.HEARTBEAT: MIRROR_HEARTBEAT.names | OWN_HEARTBEAT.names,
    # Its topic filter reads the first two, its `validate` the third.
    Kind.CHECKPOINT: MIRROR_CHECKPOINT.names
    | OWN_CHECKPOINT.names
    | {"topics", "topics.exclude", "emit.offset-syncs.enabled"},
}
_OPTIONS: Final = {
    Kind.SOURCE: MIRROR_SOURCE | OWN_SOURCE,
    Kind.HEARTBEAT: MIRROR_HEARTBEAT | OWN_HEARTBEAT,
    Kind.CHECKPOINT: MIRROR_CHECKPOINT | OWN_CHECKPOINT,
}
_POINTS_OF: Final[Mapping[Kind, Sequence[PluginPoint[Any]]]] = {
    Kind.SOURCE: (TOPIC_FILTER, CONFIG_PROPERTY_FILTER),
    Kind.HEARTBEAT: (),
    Kind.CHECKPOINT: (TOPIC_FILTER, GROUP_FILTER),
}
_ALL_NAMES: Final = frozenset().union(*_NAMES.values())
_STRUCTURE: Final = frozenset(
    {
        "name",
        "clusters",
        "connector.class",
        "source.cluster.alias",
        "target.cluster.alias",
        "enabled",
        "emit.heartbeats.enabled",
        "emit.checkpoints.enabled",
    }
)
"""The keys that the structure of the model replaces."""


@dataclass(frozen=True, slots=True)
class MirroredFlow:
    """A flow. A connector that is not in `connectors` does not run.

    `name` is the source connector's, under which positions are stored in the worker's `offset.storage.topic`;
    that is absent where it is unknown. `worker` has no client's settings: those are the connectors'.
    """

    flow: Flow
    connectors: Mapping[Kind, Properties]
    worker: Properties = field(default_factory=Properties)
    name: str | None = None

    def cluster(self, side: str) -> Properties:
        """The settings that the clients of one side share, those of the first connector."""
        return next((one.under(f"{side}.cluster.") for one in self.connectors.values()), Properties())


@dataclass(frozen=True, slots=True)
class Mirrors:
    """A whole configuration. `process` is what belongs to the mirroring process alone, as `spark.*`."""

    flows: tuple[MirroredFlow, ...]
    process: Properties = field(default_factory=Properties)


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence for the user; `left_out` if it is about a setting that the other form can't express."""

    text: str
    left_out: bool = False
    warns: bool = False

    def __str__(self) -> str:
        return f"left out: {self.text}" if self.left_out else self.text


class Remarks:
    """Collects the remarks of readers and writers, each once, in order."""

    __slots__ = ("_remarks",)

    def __init__(self) -> None:
        self._remarks: dict[Remark, None] = {}

    def __iter__(self) -> Iterator[Remark]:
        return iter(self._remarks)

    def note(self, text: str) -> None:
        self._remarks[Remark(text)] = None

    def warn(self, text: str) -> None:
        self._remarks[Remark(text, warns=True)] = None

    def leave_out(self, text: str) -> None:
        self._remarks[Remark(text, left_out=True)] = None


def reads(kind: Kind, key: str) -> bool:
    """Whether a connector reads this key; one that none of MM2's connectors knows may be a plug-in's."""
    return key in _NAMES[kind] or key in SOURCE_FRAMEWORK.names or key not in _ALL_NAMES


def connector(kind: Kind, properties: Properties, worker: Properties) -> Properties:
    """A connector's settings in the model's canonical form.

    Keys that nothing reads are dropped, and duplicates: a client's setting that its cluster has, or a
    converter that the worker has. Raises ConfigError for values that no mirror would start with.
    """
    check_values(kind, properties)
    for client in CLIENTS:
        shared = properties.under(f"{client}.").only(SHARED_NAMES)
        for side in SIDES:
            properties = shared.below(f"{side}.{client}.") | properties
    return properties.where(lambda key: _is_kept(kind, key, properties, worker))


def check_values(kind: Kind, properties: Properties) -> None:
    """Raise ConfigError for what a connector refuses. A placeholder may have a good value."""
    check_selection(properties, kind.connector_class)
    given = properties.where(lambda key: "${" not in properties[key])
    for option in _OPTIONS[kind]:
        if option.name in given:
            Definition((option,)).parse(given)
    for point in _POINTS_OF[kind]:
        if point.name_in(given) in point.ours:
            point.make(given)


def _is_kept(kind: Kind, key: str, properties: Properties, worker: Properties) -> bool:
    if (
        key in _STRUCTURE
        or key in FORMER_LISTS
        or key in SECURITY.names
        or key.startswith(PROVIDERS)
        or not reads(kind, key)
    ):
        return False
    if key in CONVERTERS:
        return properties[key].strip(JAVA_WHITESPACE) != worker.get(key, BYTE_ARRAY_CONVERTER)
    first, _, rest = key.partition(".")
    if first in SIDES:
        return _is_kept_of_side(key, properties)
    return first not in CLIENTS or rest not in SHARED_NAMES


def _is_kept_of_side(key: str, properties: Properties) -> bool:
    side, _, rest = key.partition(".")
    client, _, name = rest.partition(".")
    if client == "cluster":
        return name in SHARED_NAMES
    if client not in CLIENTS or rest in WORKER.names:
        # Kafka passes on whatever starts like a client's name: `admin.listeners`, which is a worker's.
        return not client.startswith(CLIENTS)
    return name not in SHARED_NAMES or properties[key] != properties.get(f"{side}.cluster.{name}")
