"""mm2.properties to the neutral form and back, through the same layers as a mirror reads them."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import javaproperties

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.connector_options import CONNECTORS, MIRROR_PACKAGE
from sparkmirror.config.conversion.connector_json import conventional_names
from sparkmirror.config.conversion.model import (
    CLIENTS,
    OFFSETS_TOPIC,
    PROVIDERS,
    SIDES,
    Kind,
    MirroredFlow,
    Mirrors,
    Remarks,
    connector,
    reads,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.file_findings import file_findings
from sparkmirror.config.known_keys import CLUSTER
from sparkmirror.config.mirror_maker import (
    SPARK_PREFIX,
    WORKER_PREFIXES,
    MirrorMakerConfig,
    keeps_names_by_empty_alias,
    worker_defaults,
)
from sparkmirror.config.properties import HIDDEN, Properties, is_sensitive
from sparkmirror.config.providers import to_declare
from sparkmirror.config.worker_options import INTERNAL_REST, WORKER
from sparkmirror.domain.ids import Alias, Flow

_HEARTBEATS: Final = "emit.heartbeats.enabled"
_CHECKPOINTS: Final = "emit.checkpoints.enabled"
_OWN: Final = INTERNAL_REST.names | {"dedicated.mode.enable.internal.rest"}
_PLACEHOLDER: Final = re.compile(r"\$\{([^}:]+):[^}]*\}")
_NEEDLESS: Final = re.compile(r"(\\\\)|\\([:=#!])")
_ANY_TASKS: Final = (Kind.HEARTBEAT,)
"""The connectors that have one task, whatever tasks.max is."""


def mirrors_of(properties: Properties, remarks: Remarks) -> Mirrors:
    """The flows that would run. Raises ConfigError for what `run` refuses, but for values of placeholders."""
    providers = properties.starting(PROVIDERS)
    config = MirrorMakerConfig(properties, {}, resolves=False)
    for finding in file_findings(config):
        remarks.note(str(finding))
    for flow in config.running():
        config.check_servers(flow)
    flows = tuple(_flow(config, properties, flow, remarks) for flow in config.running())
    spark = () if "spark" in config.clusters else (SPARK_PREFIX,)
    process = properties.only(_OWN) | properties.starting("listeners.https.", *spark)
    with_providers = (
        MirroredFlow(one.flow, one.connectors, one.worker | providers, one.name) for one in flows
    )
    return Mirrors(tuple(with_providers), process)


def mirror_maker_properties(mirrors: Mirrors, remarks: Remarks) -> Properties:
    """Write a configuration as properties. Where connectors differ, the source connector's value wins."""
    flows = [flow for flow in mirrors.flows if _has_usable_aliases(flow.flow, remarks)]
    aliases = dict.fromkeys(alias for flow in flows for alias in flow.flow)
    clusters = {alias: _cluster(alias, flows, remarks) for alias in aliases}
    written = {"clusters": ", ".join(aliases), **_providers(flows), **mirrors.process}
    beating = {flow.flow for flow in flows if Kind.HEARTBEAT in flow.connectors}
    everywhere = all(Flow(a, b) in beating for a in aliases for b in aliases if a != b)
    if not everywhere:
        written[_HEARTBEATS] = "false"
    for alias, settings in clusters.items():
        written |= settings.below(f"{alias}.")
    for flow in flows:
        own = dict(_switches(flow, everywhere=everywhere, remarks=remarks))
        own |= _sides(flow, clusters) | dict(_settings(flow, remarks))
        written |= {f"{flow.flow}.{key}": value for key, value in own.items()}
    _remark_on_providers(written, remarks)
    return Properties(written)


def properties_text(properties: Mapping[str, str]) -> str:
    """The text of the file, a blank line before each cluster and flow; ASCII, because Java reads Latin-1."""
    aliases = [alias.strip() for alias in properties["clusters"].split(",")]
    lines, last = [], ""
    for key, value in properties.items():
        place = _place(key, aliases)
        if place != last:
            lines.append("")
        last = place
        lines.append(f"{javaproperties.escape(key)} = {_value_text(value)}")
    return "\n".join(lines) + "\n"


def _place(key: str, aliases: list[str]) -> str:
    source, arrow, rest = key.rpartition("->")
    found = [alias for alias in aliases if rest.startswith(f"{alias}.")]
    return f"{source}{arrow}{max(found, key=len)}" if found else ""


def _value_text(value: str) -> str:
    """Write a value, without the escapes that only a key needs."""
    escaped = javaproperties.join_key_value("", value, separator="")
    return _NEEDLESS.sub(lambda found: found[1] or found[2], escaped)


def _flow(config: MirrorMakerConfig, given: Properties, flow: Flow, remarks: Remarks) -> MirroredFlow:
    cluster = config.cluster_properties(flow.target)
    # `us.west.group.id` is also `us`'s `west.group.id`, but hardly meant so; likewise `us.west->eu.topics`.
    tails = [alias.removeprefix(f"{flow.target}.") for alias in config.clusters]
    others = tuple(tail + end for tail in tails if tail not in config.clusters for end in (".", "->"))
    cluster = cluster.where(lambda key: not key.startswith(others))
    worker = _worker(flow, cluster, given)
    producer = _producer(cluster).below("producer.override.")
    connectors = {}
    for kind in Kind:
        stated = config.connector_properties(flow, kind.connector_class)
        if _runs(Kind.SOURCE, stated) and keeps_names_by_empty_alias(stated):
            stated = _with_identity(stated, flow, remarks)
        for alias, key in zip(flow, ("source.cluster.alias", "target.cluster.alias"), strict=True):
            if stated[key] != alias and stated[key]:
                remarks.leave_out(f"{stated.origin(key)} = '{stated[key]}': the connectors have {alias}")
        if _runs(kind, stated):
            connectors[kind] = connector(kind, producer | stated, worker)
    name = config.connector_properties(flow, Kind.SOURCE.connector_class)["name"].strip(JAVA_WHITESPACE)
    return MirroredFlow(flow, connectors, worker, name)


def _with_identity(stated: Properties, flow: Flow, remarks: Remarks) -> Properties:
    """The policy that keeps names in a form whose aliases can't be empty."""
    remarks.note(
        f"{flow}: topics keep their names by an empty source.cluster.alias and an empty separator; "
        "IdentityReplicationPolicy keeps them in what is written"
    )
    kept = stated.where(lambda key: key != "replication.policy.separator")
    return kept | Properties({"replication.policy.class": f"{MIRROR_PACKAGE}IdentityReplicationPolicy"})


def _worker(flow: Flow, cluster: Properties, given: Properties) -> Properties:
    stated = cluster.where(
        lambda key: key not in SHARED_NAMES and not _is_client_s(key) and CLUSTER.knows(key)
    )
    top = given.starting(*WORKER_PREFIXES)
    top = top.where(lambda key: not key.startswith("replication.policy") and not _is_connector_s(key))
    defaults = {
        key: value for key, value in worker_defaults(flow).items() if key.endswith((".topic", "group.id"))
    }
    return Properties(defaults) | stated | top


def _is_client_s(key: str) -> bool:
    return key.partition(".")[0] in CLIENTS and key not in WORKER.names


def _is_connector_s(key: str) -> bool:
    return key not in WORKER.names and any(key in definition.names for definition in CONNECTORS.values())


def _producer(cluster: Properties) -> Properties:
    """The settings of a worker's producer of data beyond those that all clients of the target share."""
    own = cluster.under("producer.")
    return own.where(lambda key: key not in SHARED_NAMES or own[key] != cluster.get(key))


def _runs(kind: Kind, stated: Properties) -> bool:
    needs = {
        Kind.SOURCE: ("enabled",),
        Kind.HEARTBEAT: (_HEARTBEATS,),
        Kind.CHECKPOINT: ("enabled", _CHECKPOINTS, "emit.offset-syncs.enabled"),
    }
    return all(_is_on(stated, key) for key in needs[kind])


def _is_on(stated: Properties, key: str) -> bool:
    text = stated.get(key, "true").strip(JAVA_WHITESPACE).lower()
    if text not in ("true", "false"):
        raise stated.error(
            key, "Expected value to be either true or false; placeholders are not resolved here"
        )
    return text == "true"


def _has_usable_aliases(flow: Flow, remarks: Remarks) -> bool:
    for alias in flow:
        if "->" in alias or "," in alias or alias != alias.strip():
            remarks.leave_out(f"{flow}: mm2.properties have no cluster of the name '{alias}'")
            return False
    return True


def _providers(flows: list[MirroredFlow]) -> dict[str, str]:
    """Config providers are the file's, not a cluster's; names from several workers are put together."""
    all_of = Properties()
    names: dict[str, None] = {}
    for flow in flows:
        all_of |= flow.worker.starting(PROVIDERS)
        names |= dict.fromkeys(
            name.strip() for name in flow.worker.get(PROVIDERS, "").split(",") if name.strip()
        )
    return dict(all_of) | ({PROVIDERS: ",".join(names)} if names else {})


def _remark_on_providers(written: Mapping[str, str], remarks: Remarks) -> None:
    known = [name.strip() for name in written.get(PROVIDERS, "").split(",")]
    for key, value in written.items():
        for name in _PLACEHOLDER.findall(value):
            if name not in known:
                remarks.note(f"{key} refers to the config provider '{name}': {to_declare(name)}")


def _cluster(alias: Alias, flows: list[MirroredFlow], remarks: Remarks) -> Properties:
    """`alias.*`: how clients reach the cluster, and the workers of the flows into it."""
    into = [flow for flow in flows if flow.flow.target == alias]
    out = [flow for flow in flows if flow.flow.source == alias]
    clients = into[0].cluster("target") if into else out[0].cluster("source")
    if not clients.get("bootstrap.servers", "").strip(JAVA_WHITESPACE):
        remarks.note(f"{alias} has no bootstrap.servers yet")
    first = clients.only(["bootstrap.servers"])
    return Properties({**first, **clients, **_shared_worker(into, remarks)})


def _shared_worker(into: list[MirroredFlow], remarks: Remarks) -> Properties:
    shared: dict[str, str] = {}
    for flow in into:
        defaults = worker_defaults(flow.flow)
        for key, value in flow.worker.items():
            if key.startswith(PROVIDERS) or value == shared.get(key, defaults.get(key)):
                continue
            if flow is into[0]:
                shared[key] = value
            else:
                remarks.leave_out(f"{key} of {flow.flow}'s worker: flows into one cluster have one")
    topics = {flow.worker[OFFSETS_TOPIC] for flow in into if OFFSETS_TOPIC in flow.worker}
    if "group.id" in shared and len(into) > 1 and len(topics) == 1:
        remarks.note(
            f"the flows into {into[0].flow.target} share the Connect group {shared['group.id']}, as their"
            " workers did; Java's dedicated mode needs a group for each flow"
        )
    return Properties(shared)


def _switches(flow: MirroredFlow, *, everywhere: bool, remarks: Remarks) -> Iterator[tuple[str, str]]:
    if Kind.SOURCE in flow.connectors:
        yield "enabled", "true"
        if Kind.CHECKPOINT not in flow.connectors:
            yield _CHECKPOINTS, "false"
    elif Kind.CHECKPOINT in flow.connectors:
        remarks.leave_out(
            f"{flow.flow}'s MirrorCheckpointConnector: it has no MirrorSourceConnector beside it, which"
            " mm2.properties would start too"
        )
    if Kind.HEARTBEAT in flow.connectors and not everywhere:
        yield _HEARTBEATS, "true"
    name = _name(flow, remarks)
    if name is not None:
        yield "name", name


def _name(flow: MirroredFlow, remarks: Remarks) -> str | None:
    """Positions are stored under a topic and a name: one without the other is of no use."""
    if flow.name is None or Kind.SOURCE not in flow.connectors or flow.name == Kind.SOURCE.simple_name:
        return None
    if OFFSETS_TOPIC in flow.worker:
        return flow.name
    remarks.note(
        f"{flow.flow} starts without positions unless {flow.flow.target}.{OFFSETS_TOPIC} is the topic in"
        f" which the Connect worker has stored the positions of {flow.name}, and {flow.flow}.name that name;"
        " give its worker's properties file too, and both are written"
    )
    return None if flow.name in conventional_names(flow.flow) else flow.name


def _sides(flow: MirroredFlow, clusters: Mapping[Alias, Properties]) -> dict[str, str]:
    """The settings by which this flow connects to a cluster differently from the cluster's own keys."""
    own = {}
    for side, alias in zip(SIDES, flow.flow, strict=True):
        common = clusters[alias]
        for key, value in flow.cluster(side).items():
            if common.get(key) != value:
                own[f"{side}.cluster.{key}"] = value
                # `alias.key` has reached each kind of client, so that alone would not do.
                own |= {f"{side}.{client}.{key}": value for client in CLIENTS if key in common}
    return own


def _settings(flow: MirroredFlow, remarks: Remarks) -> Iterator[tuple[str, str]]:
    """Join the settings of all connectors, as a flow has them."""
    heard = [kind for kind in (Kind.SOURCE, Kind.CHECKPOINT, Kind.HEARTBEAT) if kind in flow.connectors]
    if Kind.SOURCE not in flow.connectors:
        heard = [kind for kind in heard if kind is not Kind.CHECKPOINT]
    first: dict[str, Kind] = {}
    for kind in heard:
        for key in flow.connectors[kind]:
            first.setdefault(key, kind)
    for key, of in first.items():
        value = flow.connectors[of][key]
        _compare(flow, key, of, [kind for kind in heard if kind is not of], remarks)
        if not key.startswith(("source.cluster.", "target.cluster.")):
            yield key, value


def _compare(flow: MirroredFlow, key: str, of: Kind, others: list[Kind], remarks: Remarks) -> None:
    value = flow.connectors[of][key]
    for kind in others:
        if not reads(kind, key) or (key == "tasks.max" and kind in _ANY_TASKS):
            continue
        other = flow.connectors[kind].get(key, value)
        if other != value:
            shown = HIDDEN if is_sensitive(key) else other
            remarks.leave_out(
                f"{key} = {shown} of {flow.flow}'s {kind.simple_name}: a flow's connectors have one value,"
                f" that of {of.simple_name}"
            )
