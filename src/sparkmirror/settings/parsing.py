"""Parses a connector's properties into its settings: policies and filters created, intervals in seconds.

Errors in a connector's own options are found here, before anything is started.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Final

from sparkmirror.batches.cycles import names_show_origin
from sparkmirror.config.client_layers import shown_alias
from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    MIRROR_CHECKPOINT,
    MIRROR_HEARTBEAT,
    MIRROR_SOURCE,
    OWN_CHECKPOINT,
    OWN_HEARTBEAT,
    OWN_SOURCE,
    SOURCE_CONNECTOR,
    SOURCE_FRAMEWORK,
    check_mirror_source,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE, Definition, Values
from sparkmirror.config.former_keys import check_selection
from sparkmirror.config.plugin_points import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
)
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.incidents import OnLoop, Reactions
from sparkmirror.domain.option_fields import filled
from sparkmirror.domain.preserving import Preserving
from sparkmirror.files import NamedFile
from sparkmirror.policies.config_filter import EachConfigAlone
from sparkmirror.policies.filters import illegal_character
from sparkmirror.policies.java_regex import compile_names
from sparkmirror.policies.rate_limits import FLOW_KEY, TOPICS_KEY, RateLimits
from sparkmirror.policies.replication import EmptyAliases, ReplicationPolicy, RoutedPolicy
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings
from sparkmirror.settings.heartbeat import MirrorHeartbeatSettings
from sparkmirror.settings.source import PRESERVED_TOPICS, CopySettings, MirrorSourceSettings
from sparkmirror.transforms.parsing import chain_of, require_routers

_SAMPLE_TOPICS: Final = ("topic", "orders.eu")
_NOT_YET: Final = ("offsets.storage.topic",)


def mirror_source_settings(connector: Properties) -> MirrorSourceSettings:
    """The settings of a MirrorSourceConnector. Raises ConfigError with key, value and reason."""
    values = _parsed(connector, MIRROR_SOURCE | OWN_SOURCE)
    check_mirror_source(connector)
    check_selection(connector, SOURCE_CONNECTOR)
    flow, policy = _flow_and_policy(connector)
    _check_names(connector, flow.source, policy)
    policy = _routed(connector, policy)
    offset_syncs_topic = _offset_syncs_topic(values, flow, policy)
    others = partial(
        MirrorSourceSettings,
        flow=flow,
        policy=policy,
        topic_filter=TOPIC_FILTER.make(connector),
        config_filter=EachConfigAlone(CONFIG_PROPERTY_FILTER.make(connector)),
        refresh_topics_interval_s=_interval_s(connector, values, "refresh.topics"),
        sync_topic_configs_interval_s=_interval_s(connector, values, "sync.topic.configs"),
        sync_topic_acls_interval_s=_interval_s(connector, values, "sync.topic.acls"),
        offset_syncs_topic=offset_syncs_topic if values.boolean("emit.offset-syncs.enabled") else None,
        offset_syncs_on_source=_are_syncs_on_source(values),
        copying=_copy_settings(connector, values, policy),
        rate_limits=_rate_limits(connector, values),
        sync_users=_users_file(connector, values),
        sync_accounts_interval_s=_accounts_interval_s(connector, values),
        preserved_topics=_preserved_topics(values),
    )
    return filled(others, values)


def mirror_source_enabled(connector: Properties) -> bool:
    """Whether a MirrorSourceConnector does anything at all; the heartbeat connector has no such switch."""
    return MIRROR_SOURCE.parse(connector).boolean("enabled")


def mirror_checkpoint_off(connector: Properties) -> str | None:
    """The setting that turns a MirrorCheckpointConnector off; None if it is on."""
    values, source = MIRROR_CHECKPOINT.parse(connector), MIRROR_SOURCE.parse(connector)
    switches = {
        "enabled": values.boolean("enabled"),
        "emit.checkpoints.enabled": values.boolean("emit.checkpoints.enabled"),
        "emit.offset-syncs.enabled": source.boolean("emit.offset-syncs.enabled"),
    }
    off = next((f"{key} is false" for key, is_on in switches.items() if not is_on), None)
    key = "emit.checkpoints.interval.seconds"
    return f"{key} is negative" if off is None and values.integer(key) < 0 else off


def mirror_checkpoint_settings(connector: Properties) -> MirrorCheckpointSettings | None:
    """The settings of a MirrorCheckpointConnector; None where it has nothing to do. Raises ConfigError."""
    values = _parsed_of_own(connector, MIRROR_CHECKPOINT | OWN_CHECKPOINT)
    emit_interval_s = _interval_s(connector, values, "emit.checkpoints")
    if emit_interval_s is None or mirror_checkpoint_off(connector):
        return None
    check_selection(connector, CHECKPOINT_CONNECTOR)
    flow, policy = _flow_and_policy(connector)
    policy = _routed(connector, policy)
    others = partial(
        MirrorCheckpointSettings,
        flow=flow,
        policy=policy,
        group_filter=GROUP_FILTER.make(connector),
        topic_filter=TOPIC_FILTER.make(connector),
        checkpoints_topic=policy.checkpoints_topic(flow.source),
        offset_syncs_topic=_offset_syncs_topic(values, flow, policy),
        refresh_groups_interval_s=_interval_s(connector, values, "refresh.groups"),
        emit_checkpoints_interval_s=emit_interval_s,
        sync_group_offsets_interval_s=_interval_s(connector, values, "sync.group.offsets"),
        offset_syncs_on_source=_are_syncs_on_source(values),
        reverse_syncs_topic=_reverse_syncs_topic(values, flow, policy),
    )
    return filled(others, values)


def mirror_heartbeat_settings(connector: Properties) -> MirrorHeartbeatSettings:
    """The settings of a MirrorHeartbeatConnector. Raises ConfigError with key, value and reason."""
    values = _parsed_of_own(connector, MIRROR_HEARTBEAT | OWN_HEARTBEAT)
    interval_s = _interval_s(connector, values, "emit.heartbeats")
    others = partial(
        MirrorHeartbeatSettings,
        flow=_flow_and_policy(connector)[0],
        emit=interval_s is not None,
        interval_s=interval_s or float("inf"),
        topic=REPLICATION_POLICY.make(connector).heartbeats_topic(),
    )
    return filled(others, values)


def _parsed(connector: Properties, definition: Definition) -> Values:
    values = (definition | SOURCE_FRAMEWORK).parse(connector)
    for key in _NOT_YET:
        if values[key]:
            raise connector.error(key, "is not supported yet")
    return values


def _parsed_of_own(connector: Properties, definition: Definition) -> Values:
    """Parse the properties of a connector that writes records of the mirror's own."""
    values = _parsed(connector, definition)
    require_routers(connector)
    return values


def _flow_and_policy(connector: Properties) -> tuple[Flow, ReplicationPolicy]:
    """The flow by the names that its clusters are shown by, and the policy that takes those."""
    policy = REPLICATION_POLICY.make(connector)
    flow = Flow(*(Alias(shown_alias(connector, side)) for side in ("source", "target")))
    for side, alias in zip(("source", "target"), flow, strict=True):
        if (wrong := illegal_character(alias)) is not None:
            key = f"{side}.cluster.alias"
            character = "a character" if connector.hides(key) else f"the character '{wrong}'"
            raise connector.error(
                key,
                f"has {character} that no topic's name can hold, and topics of the mirror have the alias in "
                "theirs: use letters, digits, '.', '_' and '-'",
            )
    sides = zip(("source", "target"), flow, strict=True)
    empty = [
        name
        for side, name in sides
        if not connector.get(f"{side}.cluster.alias", side).strip(JAVA_WHITESPACE)
    ]
    return flow, EmptyAliases(policy, empty) if empty else policy


def _routed(connector: Properties, policy: ReplicationPolicy) -> ReplicationPolicy:
    """The policy with the routers of the connector's transforms."""
    chain = chain_of(connector)
    return policy if chain is None or not chain.routes else RoutedPolicy(policy, chain.route)


def _check_names(connector: Properties, source: Alias, policy: ReplicationPolicy) -> None:
    """Raises ConfigError where names of copies don't show their source: copies would be mirrored again."""
    for topic in _SAMPLE_TOPICS:
        remote = policy.format_remote_topic(source, topic)
        origin = policy.topic_source(remote)
        if remote != topic and origin != source:
            taken_for = "of no cluster" if origin is None else f"of the cluster '{origin}'"
            raise connector.error(
                "source.cluster.alias",
                f"'{source}' can't be told by the names of its copies: {topic} is called {remote}, which the "
                f"replication policy takes for a topic {taken_for}. Choose an alias without "
                "replication.policy.separator in it, or a policy whose topic_source returns the alias",
            )


def _are_syncs_on_source(values: Values) -> bool:
    return values.string("offset-syncs.topic.location") == "source"


def _copy_settings(connector: Properties, values: Values, policy: ReplicationPolicy) -> CopySettings:
    nested = partial(
        CopySettings,
        reactions=filled(partial(Reactions), values),
        preserving=filled(partial(Preserving), values),
        transforms=chain_of(connector),
    )
    settings = filled(nested, values)
    if settings.provenance_header and settings.reactions.on_loop is OnLoop.COPY:
        raise connector.error("provenance.header", "is of no use with on.loop=copy; use filter or fail")
    chain = settings.transforms
    if settings.provenance_header and chain is not None and chain.changes_records:
        raise connector.error("provenance.header", "can't be used together with transforms")
    names_suffice = names_show_origin(policy, _flow_and_policy(connector)[0].source)
    return replace(settings, provenance_header=False) if names_suffice else settings


def _preserved_topics(values: Values) -> tuple[str, ...] | None:
    """Return the patterns of preserved topics; None for none. Raises ConfigError."""
    if not values.boolean("offsets.preserve"):
        return None
    topics = tuple(values.strings(PRESERVED_TOPICS))
    compile_names(topics, PRESERVED_TOPICS)
    return topics


def _offset_syncs_topic(values: Values, flow: Flow, policy: ReplicationPolicy) -> str:
    return policy.offset_syncs_topic(flow.target if _are_syncs_on_source(values) else flow.source)


def _reverse_syncs_topic(values: Values, flow: Flow, policy: ReplicationPolicy) -> str | None:
    """Return the opposite flow's topic if `reverse.checkpointing.enabled`, else None."""
    if not values.boolean("reverse.checkpointing.enabled"):
        return None
    return _offset_syncs_topic(values, Flow(flow.target, flow.source), policy)


def _rate_limits(connector: Properties, values: Values) -> RateLimits:
    flow = None if values[FLOW_KEY] is None else values.integer(FLOW_KEY)
    topics = tuple(_topic_rate(connector, item) for item in values.strings(TOPICS_KEY))
    return RateLimits(flow, topics)


def _topic_rate(connector: Properties, item: str) -> tuple[str, int]:
    """Parse `REGEX=BYTES`; a regex may hold equals signs, a rate does not."""
    pattern, _, rate = (part.strip(JAVA_WHITESPACE) for part in item.rpartition("="))
    if not pattern or not re.fullmatch(r"[0-9]{1,18}", rate) or int(rate) == 0:
        quoted = connector.quoted(TOPICS_KEY, item)
        reason = f"'{quoted}' is not REGEX=BYTES, with a whole number of bytes per second, at least 1"
        raise connector.error(TOPICS_KEY, reason)
    try:
        RateLimits(topics=((pattern, int(rate)),))
    except ConfigError as error:
        quoted = connector.quoted(TOPICS_KEY, pattern)
        reason = error.reason if quoted == pattern else "not a pattern that can be used"
        raise connector.error(TOPICS_KEY, f"'{quoted}' is {reason}") from error
    return pattern, int(rate)


def _users_file(connector: Properties, values: Values) -> NamedFile | None:
    path = "" if values["sync.users"] is None else values.string("sync.users").strip()
    return NamedFile(path, connector.roots("sync.users")) if path else None


def _accounts_interval_s(connector: Properties, values: Values) -> float | None:
    """The interval of ACLs, whether those are synced or not."""
    is_wanted = values.boolean("sync.quotas") or _users_file(connector, values) is not None
    return _seconds(connector, values, "sync.topic.acls") if is_wanted else None


def _interval_s(connector: Properties, values: Values, job: str) -> float | None:
    """Return None for a job that is turned off."""
    return _seconds(connector, values, job) if values.boolean(f"{job}.enabled") else None


def _seconds(connector: Properties, values: Values, job: str) -> float | None:
    """Return None for a negative interval, which turns a job off in Kafka; 0 makes Java's scheduler throw."""
    key = f"{job}.interval.seconds"
    seconds = values.integer(key)
    if seconds < 0:
        return None
    if seconds == 0:
        raise connector.error(key, f"must be at least 1; {job}.enabled=false turns it off")
    return float(seconds)
