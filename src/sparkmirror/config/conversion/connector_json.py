"""Reads and writes connectors as Connect's REST API takes them: JSON files `mm2-{msc,hbc,cpc}-CLUSTER.json`.

A file holds the bare settings, as for `PUT /connectors/NAME/config`, or `{"name": …, "config": {…}}`, as for
`POST /connectors`, or an array of the latter. `worker_of` reads the worker's own properties file.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.connector_texts import WrittenConnector, written_connectors
from sparkmirror.config.conversion.model import (
    CLIENTS,
    CONVERTERS,
    OFFSETS_TOPIC,
    PROVIDERS,
    Kind,
    MirroredFlow,
    Mirrors,
    Remarks,
    connector,
)
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.file_findings import connector_findings, text_findings
from sparkmirror.config.file_kinds import CLASS
from sparkmirror.config.known_keys import unknown_worker_keys
from sparkmirror.config.mirror_maker import BYTE_ARRAY_CONVERTER, worker_defaults
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow

_CLASSES: Final = {
    name: kind
    for kind in Kind
    # Connect takes the simple name too, with or without its last word.
    for name in (kind.connector_class, kind.simple_name, kind.simple_name.removesuffix("Connector"))
}
_SWITCHES: Final = {Kind.HEARTBEAT: "emit.heartbeats.enabled", Kind.CHECKPOINT: "emit.checkpoints.enabled"}


class JsonConnector(NamedTuple):
    """A connector as it was read; `file` is what remarks call its origin."""

    file: str
    kind: Kind
    flow: Flow
    name: str | None
    settings: Properties


def parse_connectors(text: str, file: str, remarks: Remarks) -> list[JsonConnector]:
    """The mirror connectors of one file. Raises ConfigError naming the file, and the line if it's no JSON."""
    return [
        one
        for given in written_connectors(text, file)
        if (one := mirror_connector(given, file, remarks)) is not None
    ]


def flows_of(connectors: Sequence[JsonConnector], worker: Properties, remarks: Remarks) -> Mirrors:
    """Put the connectors of each flow together. `worker` is that of the Connect cluster, if it's known."""
    flows: dict[Flow, dict[Kind, JsonConnector]] = {}
    for one in connectors:
        there = flows.setdefault(one.flow, {})
        if one.kind in there:
            remarks.leave_out(
                f"{one.file}: a second {one.kind.simple_name} of {one.flow}, beside {there[one.kind].file};"
                " a flow has one"
            )
            continue
        there[one.kind] = one
    return Mirrors(tuple(_flow(flow, found, worker) for flow, found in flows.items()))


def connector_files(mirrors: Mirrors, remarks: Remarks) -> dict[str, dict[str, str]]:
    """Write every connector's settings, by its name, which is that of its file too, without `.json`."""
    for key in mirrors.process:
        remarks.leave_out(f"{key}: belongs to a process of its own, not to a connector")
    targets = Counter(flow.flow.source for flow in mirrors.flows)
    files = {}
    for flow in mirrors.flows:
        suffix = flow.flow.source if targets[flow.flow.source] == 1 else "-".join(flow.flow)
        _remark_on_worker(flow, remarks)
        for kind, settings in flow.connectors.items():
            own_name = flow.name if kind is Kind.SOURCE and flow.name != kind.simple_name else None
            name = own_name or f"mm2-{kind.short}-{suffix}"
            files[f"mm2-{kind.short}-{suffix}"] = _as_written(name, kind, flow, settings)
    return files


def conventional_names(flow: Flow) -> tuple[str, str, str]:
    """The names of a source connector that follow from its flow."""
    kind = Kind.SOURCE
    return kind.simple_name, f"mm2-{kind.short}-{flow.source}", f"mm2-{kind.short}-{'-'.join(flow)}"


def mirror_connector(given: WrittenConnector, file: str, remarks: Remarks) -> JsonConnector | None:
    """Read a connector of MirrorMaker; None for another, or one that is turned off, with a remark."""
    name, settings = given.name, given.settings
    if given.beside is not None and name is None:
        raise ConfigError(file, None, "has a config and no name beside it")
    for remark in given.remarks:
        remarks.note(f"{file}: {remark}")
    named = settings.get(CLASS, "")
    if not named.strip(JAVA_WHITESPACE):
        raise ConfigError(file, None, "has no connector.class, so it's no connector")
    kind = _CLASSES.get(named)
    if kind is None:
        remarks.leave_out(f"{file}: {named} is none of MirrorMaker's three connectors")
        return None
    for finding in (*connector_findings(settings), *text_findings(settings)):
        remarks.note(f"{file}: {finding}")
    source = settings.get("source.cluster.alias", "").strip(JAVA_WHITESPACE)
    target = settings.get("target.cluster.alias", "target").strip(JAVA_WHITESPACE)
    if not source or not target:
        raise ConfigError(file, None, "has no source.cluster.alias or an empty target.cluster.alias")
    flow = Flow(Alias(source), Alias(target))
    if not _runs(kind, settings):
        remarks.note(f"{file}: is turned off, so {flow} has no {kind.simple_name}")
        return None
    return JsonConnector(file, kind, flow, name, settings)


def _runs(kind: Kind, settings: Properties) -> bool:
    switches = ("enabled", _SWITCHES[kind]) if kind in _SWITCHES else ("enabled",)
    return all(settings.get(key, "true").strip(JAVA_WHITESPACE).lower() != "false" for key in switches)


def _flow(flow: Flow, found: Mapping[Kind, JsonConnector], worker: Properties) -> MirroredFlow:
    producer = worker.under("producer.").below("producer.override.")
    own = worker.where(lambda key: not key.startswith(tuple(f"{client}." for client in CLIENTS)))
    connectors = {
        kind: connector(kind, producer | found[kind].settings, own) for kind in Kind if kind in found
    }
    name = found[Kind.SOURCE].name if Kind.SOURCE in found else None
    return MirroredFlow(flow, connectors, own, name)


def _as_written(name: str, kind: Kind, flow: MirroredFlow, settings: Properties) -> dict[str, str]:
    head = {"name": name, "connector.class": kind.connector_class}
    aliases = dict(zip(("source.cluster.alias", "target.cluster.alias"), flow.flow, strict=True))
    converters = {key: flow.worker.get(key, BYTE_ARRAY_CONVERTER) for key in CONVERTERS}
    return head | aliases | converters | dict(settings)


def _remark_on_worker(flow: MirroredFlow, remarks: Remarks) -> None:
    defaults = worker_defaults(flow.flow)
    keys = [key for key, value in flow.worker.items() if defaults.get(key) != value and key not in CONVERTERS]
    if keys:
        remarks.leave_out(
            f"{', '.join(keys)} of {flow.flow.target}: must be set in the properties file"
            " of its Connect worker"
        )
    if Kind.SOURCE in flow.connectors and OFFSETS_TOPIC in flow.worker:
        remarks.note(
            f"{flow.flow} has its positions in {flow.worker[OFFSETS_TOPIC]}, as connector {flow.name}; under"
            " another name, or in a worker with another offset.storage.topic, it starts without positions"
        )


def worker_of(
    properties: Properties, connectors: list[JsonConnector], file: str, remarks: Remarks
) -> Properties:
    """The worker's settings for the flows of its connectors, without those that the connectors have too."""
    unknown = unknown_worker_keys(key for key in properties if not key.startswith(PROVIDERS))
    for key in unknown:
        remarks.note(f"{file}: nothing reads {key}")
    for one in connectors:
        _compare_clients(properties, one, file, remarks)
    unread = {key.key for key in unknown} | SHARED_NAMES
    others = properties.where(lambda key: key not in unread and not key.startswith(("consumer.", "admin.")))
    shared = {f"producer.{key}" for key in SHARED_NAMES if f"producer.{key}" in others}
    alike = {key for key in shared if properties[key] == properties.get(key.removeprefix("producer."))}
    return others.where(lambda key: key not in alike)


def _compare_clients(worker: Properties, one: JsonConnector, file: str, remarks: Remarks) -> None:
    target = one.settings.under("target.cluster.")
    for key in worker.only(SHARED_NAMES):
        if worker[key] != target.get(key):
            remarks.leave_out(f"{file}: {key} is not that of {one.flow.target}, and a flow has one target")
