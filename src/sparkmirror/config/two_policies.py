"""Compares the replication policies of a flow's source and checkpoint connectors. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sparkmirror.config.connector_options import MIRROR_SOURCE
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.plugin_points import REPLICATION_POLICY
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow

_DEFAULTS: Final = {
    option.name: str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    for option in MIRROR_SOURCE
    if option.name.startswith("replication.policy.")
}
TWO_POLICIES: Final = "two policies"
_TOPIC: Final = "orders"
_ALL_THE_SAME: Final = "groups are translated all the same"


def difference(flow: Flow, source: Mapping[str, str], checkpoint: Mapping[str, str]) -> str | None:
    """Say what differs, and what becomes of groups where each has its own; None where nothing differs."""
    told = [
        f"{key} is {_quoted(ours)} for its MirrorSourceConnector and {_quoted(theirs)} for its "
        "MirrorCheckpointConnector"
        for key, default in _DEFAULTS.items()
        if (ours := source.get(key, default).strip(JAVA_WHITESPACE))
        != (theirs := checkpoint.get(key, default).strip(JAVA_WHITESPACE))
    ]
    return (
        f"{flow}: {', '.join(told)}: where each has its own, {_effect(flow, source, checkpoint)}"
        if told
        else None
    )


def is_harmless(difference: str) -> bool:
    """Whether groups are translated although the two policies differ."""
    return difference.endswith(_ALL_THE_SAME)


def difference_to_others(config: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Compare a connector's config with those of other connectors of its flow, on one worker."""
    for other in others:
        pair = {_kind(one): one for one in (config, other)}
        if pair.keys() == {_SOURCE, _CHECKPOINT} and _flow(config) == _flow(other):
            found = difference(_flow(config), pair[_SOURCE], pair[_CHECKPOINT])
            if found is not None:
                yield found


_SOURCE: Final = "MirrorSource"
_CHECKPOINT: Final = "MirrorCheckpoint"


def _kind(config: Mapping[str, str]) -> str:
    return config.get("connector.class", "").rpartition(".")[2].removesuffix("Connector")


def _flow(config: Mapping[str, str]) -> Flow:
    source, target = config.get("source.cluster.alias", ""), config.get("target.cluster.alias", "target")
    return Flow(Alias(source.strip(JAVA_WHITESPACE)), Alias(target.strip(JAVA_WHITESPACE)))


def _effect(flow: Flow, source: Mapping[str, str], checkpoint: Mapping[str, str]) -> str:
    aliases = {"source.cluster.alias": flow.source, "target.cluster.alias": flow.target}
    try:
        ours, theirs = (
            REPLICATION_POLICY.make(Properties({**one, **aliases})) for one in (source, checkpoint)
        )
    except ConfigError:
        return "groups may be translated to topics that no flow writes"
    on_source = source.get("offset-syncs.topic.location", "source").strip(JAVA_WHITESPACE) != "target"
    alias = flow.target if on_source else flow.source
    written, read = ours.offset_syncs_topic(alias), theirs.offset_syncs_topic(alias)
    if written != read:
        return f"no group is translated: offset syncs are written to {written} and read from {read}"
    copy, named = (one.format_remote_topic(flow.source, _TOPIC) for one in (ours, theirs))
    if copy != named:
        return f"groups get no offsets: the copy of {_TOPIC} is {copy}, and they are translated to {named}"
    return _ALL_THE_SAME


def _quoted(value: str) -> str:
    return value or "empty"
