"""Reads Strimzi's KafkaMirrorMaker2 resources, of API v1 and before, as the operator does.

The operator runs one Connect cluster for a resource, at its one target. The connectors are called
`S->T.MirrorSourceConnector` and so on. The v1 API has no heartbeat connector; the ones before had one.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.conversion.model import (
    CLIENTS,
    Kind,
    MirroredFlow,
    Mirrors,
    Remarks,
    connector,
)
from sparkmirror.config.conversion.strimzi_clusters import (
    ClusterReader,
    mounted,
    operator_providers,
)
from sparkmirror.config.conversion.yaml_section import Section, documents
from sparkmirror.config.file_findings import connector_findings
from sparkmirror.config.file_kinds import no_resource
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow

KIND: Final = "KafkaMirrorMaker2"
_API: Final = "kafka.strimzi.io/"
_RESOURCE: Final = re.compile(rf"^\s*[\"']?kind[\"']?\s*:\s*[\"']?{KIND}\b", re.MULTILINE)

_WORKER: Final = {
    "groupId": ("group.id", "mirrormaker2-cluster"),
    "configStorageTopic": ("config.storage.topic", "mirrormaker2-cluster-configs"),
    "offsetStorageTopic": ("offset.storage.topic", "mirrormaker2-cluster-offsets"),
    "statusStorageTopic": ("status.storage.topic", "mirrormaker2-cluster-status"),
}
"""The target's own fields in v1; before, keys of its `config`, with these defaults."""

_FORBIDDEN: Final = ("ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers")
"""Prefixes of keys that the operator ignores in a worker's `config`."""

_CONNECTORS: Final = {
    "sourceConnector": Kind.SOURCE,
    "heartbeatConnector": Kind.HEARTBEAT,
    "checkpointConnector": Kind.CHECKPOINT,
}
_CONNECTOR_FORBIDDEN: Final = ("name", "connector.class", "tasks.max", "connector.plugin.version")
_PATTERNS: Final = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
}
_OLD_PATTERNS: Final = {
    "topicsBlacklistPattern": "topics.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}


def is_resource(text: str) -> bool:
    """Whether a text, YAML or JSON, holds such a resource."""
    return _RESOURCE.search(text) is not None


def parse_resources(text: str, file: str, secrets: str, remarks: Remarks) -> Mirrors:
    """The flows of every such resource in a file. `secrets` is the folder in which secrets are mounted.

    Raises ConfigError naming the path of what is missing or malformed.
    """
    content = documents(mounted(text, secrets, remarks), file)
    found = [one for document in content for one in _resources_in(document)]
    if not found:
        kinds = (str(document.get("kind", "")) for document in content if isinstance(document, dict))
        raise ConfigError(file, None, no_resource(kinds, KIND))
    flows: list[MirroredFlow] = []
    for resource in found:
        flows += _Resource(Section(resource, ""), secrets, remarks).flows()
    return Mirrors(tuple(flows))


def _resources_in(document: object) -> list[object]:
    """A document itself, or the items of a list as `kubectl get -o yaml` prints it."""
    if not isinstance(document, dict):
        return []
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        return [one for item in document["items"] for one in _resources_in(item)]
    return [document] if document.get("kind") == KIND else []


class _Cluster(NamedTuple):
    alias: Alias
    clients: Properties
    section: Section


class _Resource:
    """A resource while it is read."""

    def __init__(self, resource: Section, secrets: str, remarks: Remarks) -> None:
        self._resource = resource
        self._spec = resource.needed_section("spec")
        self._reader = ClusterReader(secrets, remarks)
        self._remarks = remarks

    def flows(self) -> list[MirroredFlow]:
        version = self._resource.needed("apiVersion")
        if not version.startswith(_API):
            self._remarks.note(f"apiVersion {version} is read as {_API}{version.rpartition('/')[2]}")
        clusters = {one.alias: one for one in map(self._cluster, self._spec.sections("clusters"))}
        target = self._target(clusters)
        worker = self._worker(target)
        mirrors = self._spec.sections("mirrors")
        if not mirrors:
            raise ConfigError("spec.mirrors", None, "is missing")
        flows = [self._flow(mirror, clusters, target, worker) for mirror in mirrors]
        if len({flow.flow for flow in flows}) < len(flows):
            raise ConfigError("spec.mirrors", None, "have one source twice; a flow is mirrored once")
        self._spec.ignore("version", "replicas")
        self._resource.ignore("kind", "metadata", "status")
        for path in self._resource.left_over():
            self._remarks.leave_out(f"{path}: has no counterpart outside of the operator")
        return flows

    def _cluster(self, section: Section) -> _Cluster:
        return _Cluster(Alias(section.needed("alias")), self._reader.clients(section), section)

    def _target(self, clusters: Mapping[Alias, _Cluster]) -> _Cluster:
        if "target" in self._spec:
            return self._cluster(self._spec.needed_section("target"))
        alias = self._spec.text("connectCluster")
        if not alias:
            raise ConfigError("spec.target", None, "is missing; before v1, connectCluster and clusters")
        if alias not in clusters:
            raise ConfigError("spec.connectCluster", alias, "is none of spec.clusters")
        return clusters[Alias(alias)]

    def _worker(self, target: _Cluster) -> Properties:
        """The settings of the resource's Connect workers; those of their producer too, for `_flow`."""
        config = target.section.settings("config")
        fields = {}
        for name, (key, default) in _WORKER.items():
            fields[key] = target.section.text(name) or config.get(key, default)
        for key in config:
            if key.startswith(_FORBIDDEN) and key not in SHARED_NAMES:
                self._remarks.note(f"{target.section.path}.config.{key}: the operator ignores it")
        config = config.where(
            lambda key: key not in SHARED_NAMES and not key.startswith((*_FORBIDDEN, "consumer.", "admin."))
        )
        return config | Properties(fields)

    def _flow(
        self, mirror: Section, clusters: Mapping[Alias, _Cluster], target: _Cluster, worker: Properties
    ) -> MirroredFlow:
        source = self._source(mirror, clusters)
        named = mirror.text("targetCluster")
        if named not in (None, target.alias):
            where = "spec.target" if "target" in self._spec else "spec.connectCluster"
            reason = f"is not {target.alias}, which {where} says is the target of all mirrors of a resource"
            raise ConfigError(f"{mirror.path}.targetCluster", named, reason)
        for key in source.section.settings("config"):
            if key not in SHARED_NAMES:
                self._remarks.note(f"nothing reads {source.section.path}.config.{key}")
        flow = Flow(source.alias, target.alias)
        common = source.clients.below("source.cluster.") | target.clients.below("target.cluster.")
        common |= worker.under("producer.").below("producer.override.")
        stated = {kind: self._connector(mirror, field) for field, kind in _CONNECTORS.items()}
        values = [value for each in (common, *stated.values()) if each is not None for value in each.values()]
        own = operator_providers(worker, values).where(
            lambda key: not key.startswith(tuple(f"{client}." for client in CLIENTS))
        )
        patterns = _patterns(mirror)
        connectors = {
            kind: connector(kind, common | each | patterns, own)
            for kind, each in stated.items()
            if each is not None
        }
        return MirroredFlow(flow, connectors, own, f"{flow}.{Kind.SOURCE.simple_name}")

    def _source(self, mirror: Section, clusters: Mapping[Alias, _Cluster]) -> _Cluster:
        if "source" in mirror:
            return self._cluster(mirror.needed_section("source"))
        alias = mirror.text("sourceCluster")
        if not alias:
            raise ConfigError(f"{mirror.path}.source", None, "is missing; before v1, sourceCluster")
        if alias not in clusters:
            raise ConfigError(f"{mirror.path}.sourceCluster", alias, "is none of spec.clusters")
        return clusters[Alias(alias)]

    def _connector(self, mirror: Section, field: str) -> Properties | None:
        if field not in mirror:
            return None
        section = mirror.needed_section(field)
        config = section.settings("config")
        for key in _CONNECTOR_FORBIDDEN:
            if key in config:
                self._remarks.note(f"{section.path}.config.{key}: the operator ignores it")
        config = config.where(lambda key: key not in _CONNECTOR_FORBIDDEN)
        for finding in connector_findings(config):
            self._remarks.note(f"{section.path}.config: {finding}")
        fields = {"tasks.max": section.text("tasksMax"), "connector.plugin.version": section.text("version")}
        if "autoRestart" in section:
            section.ignore("autoRestart")
            self._remarks.note(f"{section.path}.autoRestart: failed tasks are always restarted")
        state = "paused" if section.text("pause") == "true" else section.text("state") or "running"
        if state != "running":
            self._remarks.leave_out(f"{section.path}: is {state}, and does not run at all elsewhere")
            return None
        return config | Properties({key: value for key, value in fields.items() if value is not None})


def _patterns(mirror: Section) -> Properties:
    old = {key: mirror.text(name) for name, key in _OLD_PATTERNS.items()}
    new = {key: mirror.text(name) for name, key in _PATTERNS.items()}
    given = old | {key: value for key, value in new.items() if value is not None}
    return Properties({key: value for key, value in given.items() if value is not None})
