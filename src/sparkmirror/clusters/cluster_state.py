"""Defines a cluster's specification and its state on disk, `cluster.json`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from sparkmirror.clusters.processes import ProcessId
from sparkmirror.clusters.storage import random_id
from sparkmirror.domain.errors import ClusterStartError
from sparkmirror.files import written_whole

STATE_FILE = "cluster.json"


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The specification of a cluster. `settings` override the brokers' server.properties."""

    name: str
    brokers: Literal[1, 2, 3] = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    heap_mb: int = 512


@dataclass(frozen=True, slots=True)
class NodeState:
    """A broker's ports (0: not chosen yet) and the process that last ran it."""

    broker_port: int = 0
    controller_port: int = 0
    process: ProcessId | None = None


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The content of `cluster.json`."""

    spec: ClusterSpec
    cluster_id: str
    nodes: tuple[NodeState, ...]

    @classmethod
    def new(cls, spec: ClusterSpec) -> Self:
        return cls(spec, random_id(), (NodeState(),) * spec.brokers)

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        """The state saved in a cluster's directory, None if there is none."""
        file = directory / STATE_FILE
        try:
            saved = json.loads(file.read_text(encoding="utf-8"))
            nodes = tuple(_node(node) for node in saved["nodes"])
            return cls(ClusterSpec(**saved["spec"]), saved["cluster_id"], nodes)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as exc:
            raise ClusterStartError(
                f"{file} can't be read ({exc}). Delete {directory} to start again."
            ) from exc

    def save(self, directory: Path) -> None:
        """Replace the file in one step, so that no reader sees half of it."""
        with written_whole(directory / STATE_FILE) as draft:
            draft.write_text(json.dumps(asdict(self), indent=2), encoding="utf-8")

    def wanted_as(self, spec: ClusterSpec) -> Self:
        """The same data under other settings. A cluster can't change its number of brokers."""
        if spec.brokers != self.spec.brokers:
            raise ClusterStartError(
                f"Cluster {spec.name} has data of {self.spec.brokers} broker(s), not {spec.brokers}. "
                "Delete its data first."
            )
        return replace(self, spec=spec)


def _node(saved: dict[str, Any]) -> NodeState:
    process = saved["process"]
    identity = ProcessId(**process) if process else None
    return NodeState(saved["broker_port"], saved["controller_port"], identity)
