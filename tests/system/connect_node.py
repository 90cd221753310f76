"""Runs nodes of a Connect group: `sparkmirror worker` processes and requests to their REST API."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import urllib3

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST, ReservedPort
from tests.support.mirror import START_TIMEOUT_S, Mirror
from tests.support.proxy import proxied
from tests.support.waiting import await_value
from tests.system.java_mm2 import connector_class

_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_ASK_TIMEOUT_S: Final = 30.0
SOURCE, CHECKPOINT, HEARTBEAT = (
    "MirrorSourceConnector",
    "MirrorCheckpointConnector",
    "MirrorHeartbeatConnector",
)


class Answer(NamedTuple):
    status: int
    body: Any


class ConnectNode(Mirror):
    """One node of a group; `properties` is the group's worker file."""

    command = "worker"

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        self._port = ReservedPort()
        self.url = f"http://{HOST}:{self._port.number}"
        self.worker_id = f"{HOST}:{self._port.number}"
        self._http = urllib3.PoolManager(timeout=_ASK_TIMEOUT_S, retries=False)
        self._properties = {**properties, "listeners": self.url}
        super().__init__(folder, self._properties)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        encoded = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        answer = self._http.request(method, f"{self.url}{path}", body=encoded, headers=headers)
        return Answer(answer.status, json.loads(answer.data) if answer.data else None)

    def await_answers(self) -> None:
        """Wait until the node has read its topics and knows the leader."""

        def healthy() -> bool:
            assert self._running.is_alive(), self.log_text()
            try:
                return self.ask("GET", "/health").status == 200
            except urllib3.exceptions.HTTPError:
                return False

        await_value(healthy, START_TIMEOUT_S, self.log_text)

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector or change its configuration."""
        answer = self.ask("PUT", f"/connectors/{name}/config", dict(config))
        assert answer.status in {200, 201}, answer

    def states(self, name: str) -> tuple[str | None, list[str]]:
        """Read the states of the connector and of its tasks."""
        answer = self.ask("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return None, []
        return answer.body["connector"]["state"], [task["state"] for task in answer.body["tasks"]]

    def await_states(
        self, name: str, connector: str, *tasks: str, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        expected = (connector, list(tasks))
        await_value(
            lambda: self.states(name) == expected,
            timeout_s,
            lambda: f"{name} is {self.states(name)}, not {expected}:\n{self.log_text()}",
        )

    def close(self) -> None:
        super().close()
        self._http.clear()
        self._port.release()


class NetworkedNode(ConnectNode):
    """A node whose connections to both clusters and to other nodes can be cut. Tests send requests directly.

    The node's connectors find the clusters at `${env:SOURCE}` and `${env:TARGET}`.
    """

    def __init__(
        self, folder: Path, properties: Mapping[str, str], source: LocalCluster, target: LocalCluster
    ) -> None:
        super().__init__(folder, properties)
        self._proxies = ExitStack()
        # The proxy passes HTTP as one frame that never ends.
        served = [*(cluster.brokers[0].port for cluster in (source, target)), self._port.number]
        self._network = self._proxies.enter_context(proxied(*((HOST, port) for port in served)))
        source_here, target_here, self.worker_id = (f"{HOST}:{proxy.port}" for proxy in self._network)
        self.environment = {"SOURCE": source_here, "TARGET": target_here}
        own = {
            "bootstrap.servers": target_here,
            "rest.advertised.port": str(self._network[-1].port),
            "config.providers": "env",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        }
        self.configure({**self._properties, **own})

    def cut_off(self) -> None:
        """Cut the network silently, without closing connections."""
        for proxy in self._network:
            proxy.silence()

    def connect_again(self) -> None:
        """Restore the network; held-back data arrives late."""
        for proxy in self._network:
            proxy.restore()

    def close(self) -> None:
        super().close()
        self._proxies.close()


Node = TypeVar("Node", bound=ConnectNode)


def group_properties(cluster: LocalCluster, group: str) -> dict[str, str]:
    """Return a typical worker file."""
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "header.converter": _BYTES,
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.partitions": "5",
        "offset.flush.interval.ms": "1000",
    }


def connector_config(
    kind: str, source: tuple[str, LocalCluster], target: tuple[str, LocalCluster], **more: str
) -> dict[str, str]:
    """Return a connector configuration as in a PUT body; `more` has underscores for dots."""
    return {
        "connector.class": connector_class(kind),
        "source.cluster.alias": source[0],
        "source.cluster.bootstrap.servers": source[1].bootstrap_servers,
        "target.cluster.alias": target[0],
        "target.cluster.bootstrap.servers": target[1].bootstrap_servers,
        "replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "refresh.topics.interval.seconds": "5",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@contextmanager
def running_nodes(folder: Path, properties: Mapping[str, str], count: int) -> Iterator[list[ConnectNode]]:
    """Start nodes of one group; those that still run at the end of the block are killed."""
    with started(ConnectNode(folder / f"node-{number}", properties) for number in range(count)) as nodes:
        yield nodes


@contextmanager
def started(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    """Start the nodes; those that still run at the end of the block are killed."""
    with ExitStack() as stack:
        begun = []
        for node in nodes:
            stack.callback(node.close)
            node.start()
            begun.append(node)
        yield begun
