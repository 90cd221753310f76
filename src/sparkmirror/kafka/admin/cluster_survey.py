"""Surveys a cluster: its brokers, the versions they support, and this principal's rights (KIP-430)."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.domain.acls import AclOperation, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.network import host_port
from sparkmirror.domain.rights import Need, Right, grant_command, principal_of
from sparkmirror.kafka.admin.tried_rights import is_denied
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.wire.error_codes import TOPIC_AUTHORIZATION_FAILED

_VERSION_MAX: Final = 10
"""The last that has the operations on the cluster too (KIP-700)."""
_NOT_LISTED: Final = 31
"""The one bit that brokers send instead of operations."""

Operations = frozenset[AclOperation]


class ApiRange(NamedTuple):
    """The versions of a request that a broker supports."""

    low: int
    high: int


class SurveyedBroker(NamedTuple):
    """`versions` are by the API keys of Kafka's requests."""

    address: str
    versions: Mapping[int, ApiRange]


@dataclass(frozen=True, slots=True)
class ClusterSurvey:
    """Operations are None where the cluster doesn't list them (KIP-430: brokers before 2.3, no right to ask).

    `errors` are Kafka's codes for topics that were asked for by name, 0 for those that exist. On the
    transactional ids `refused_ids` the principal has no right to write.
    """

    alias: Alias
    cluster_id: str = ""
    principal: str = ""
    bootstrap_servers: str = ""
    brokers: tuple[SurveyedBroker, ...] = ()
    operations: Operations | None = None
    topic_operations: Mapping[str, Operations] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    refused_ids: frozenset[str] = frozenset()

    def lacks(self, right: Right) -> bool:
        """Whether this principal certainly lacks a right on a topic, on a prefix of ids or on the cluster."""
        if right.resource_type is ResourceType.CLUSTER:
            return self.operations is not None and right.operation not in self.operations
        if right.resource_type is ResourceType.TRANSACTIONAL_ID:
            return any(each.startswith(right.name) for each in self.refused_ids)
        known = self.topic_operations.get(right.name)
        if known is None or right.operation in known:
            return False
        if right.operation is not AclOperation.CREATE:
            return True
        # The right to create any topic is not repeated for each.
        return self.operations is not None and AclOperation.CREATE not in self.operations

    def grant(self, right: Right) -> str:
        """The command that grants the right."""
        return grant_command(right, self.principal, self.bootstrap_servers)


def survey(
    settings: ConnectionSettings,
    alias: Alias,
    topics: Collection[str],
    transactional_ids: Collection[str] = (),
) -> ClusterSurvey:
    """Send a request for topics, one for each id, and connect to each broker. None of them need exist.

    Raises DisconnectedError when no broker responds.
    """
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in sorted(topics)],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    with closing(Cluster(settings)) as cluster:
        response = cluster.request(
            "describe the cluster", request, MetadataResponse, version_max=_VERSION_MAX
        )
        brokers = tuple(_surveyed(cluster, broker) for broker in response.brokers)
        refused_ids = {each for each in transactional_ids if is_denied(cluster, Need.TRANSACT.of(each))}
    return ClusterSurvey(
        alias,
        response.cluster_id or "",
        principal_of(settings),
        settings.servers,
        brokers,
        _operations(response),
        _by_topic(response.topics),
        {topic.name: topic.error_code for topic in response.topics},
        frozenset(refused_ids),
    )


def _surveyed(cluster: Cluster, broker: Any) -> SurveyedBroker:
    """A broker that can't be reached counts, without versions."""
    versions: Mapping[int, ApiRange] = {}
    try:
        connection = cluster.connection((broker.host, broker.port))
        versions = {key: ApiRange(*offered) for key, offered in connection.versions.items()}
    except DisconnectedError:
        pass
    return SurveyedBroker(host_port(broker.host, broker.port), versions)


def _by_topic(topics: Iterable[Any]) -> Mapping[str, Operations]:
    """A principal that may not even describe a topic has no right on it that needs more."""
    found = {}
    for topic in topics:
        known = frozenset() if topic.error_code == TOPIC_AUTHORIZATION_FAILED else _operations(topic)
        if known is not None:
            found[topic.name] = known
    return found


def _operations(described: Any) -> Operations | None:
    """Return the listed operations, or None. A cluster lists none for a principal without DESCRIBE."""
    known = getattr(described, "authorized_operations", None)
    if not known or _NOT_LISTED in known:
        return None
    named = frozenset(AclOperation)
    return frozenset(AclOperation(number) for number in known if number in named)
