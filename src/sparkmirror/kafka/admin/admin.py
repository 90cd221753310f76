"""Reads and changes topics, configs, ACLs, quotas and users of one cluster.

Bulk calls return a result per item, so that one bad item never hides the others.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from sparkmirror.domain.accounts import QuotaChange, Quotas, SaltedCredential, ScramCredential
from sparkmirror.domain.acls import AclBinding, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.rights import Need
from sparkmirror.domain.topics import AlterConfigOp, ConfigEntry, ListedTopic, TopicCreation, TopicListing
from sparkmirror.kafka.admin.accounts import Accounts
from sparkmirror.kafka.admin.acls import Acls
from sparkmirror.kafka.admin.topic_configs import TopicConfigsReader
from sparkmirror.kafka.admin.topic_listing import TopicLister
from sparkmirror.kafka.cluster import Cluster, Role
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.metadata import request_metadata
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.policies.admin_writes import AclResults, QuotaResults, Results

_TOPIC_CONFIGS = 2
"""Kafka's number for topics among the resources that have configs."""
_DEFAULTS_FROM = 4
"""The version of CreateTopics that lets brokers choose partition count and replication factor."""
_VISIBLE_POLL_S = 0.05
_RECORDS_PER_REQUEST = 2000
"""Records of the metadata log per request: KRaft's controller refuses more than 10,000."""

_Item = TypeVar("_Item")


class TopicConfigs(NamedTuple):
    """The configs of topics that exist; `errors` has one for topics that could not be described."""

    configs: dict[str, tuple[ConfigEntry, ...]]
    errors: dict[str, KafkaError]


class Admin:
    """Reads, and is `AdminWrites`. Every method blocks and raises KafkaError when all failed. One owner."""

    def __init__(self, settings: ConnectionSettings, *, checks_only: bool = False) -> None:
        """`checks_only` lets brokers validate creations, growth and configs without applying them."""
        self._checks_only = checks_only
        self._timeout_s = settings.request_timeout_s
        self._cluster = Cluster(settings)
        self._network = network_of(settings)
        self._lister = TopicLister(self._cluster)
        self._configs = TopicConfigsReader(self._cluster)
        self._acls = Acls(self._cluster)
        self._accounts = Accounts(self._cluster)

    @property
    def cluster(self) -> str:
        """The cluster in errors: its alias, else its bootstrap servers."""
        return self._cluster.name

    @property
    def bootstrap_servers(self) -> str:
        """Return the bootstrap servers as a command's `--bootstrap-server` takes them."""
        return self._cluster.settings.servers

    def close(self) -> None:
        self._cluster.close()

    def listing(self) -> TopicListing:
        """Every topic: the same object as before while nothing has changed."""
        return self._lister.read()

    def partition_counts(self) -> Mapping[str, int]:
        """Every topic that isn't internal to the brokers."""
        return self.listing().counts

    def named(self, topics: Collection[str]) -> Mapping[str, ListedTopic]:
        """Describe these topics; a missing one and one that may not be described have different errors."""
        return self._lister.named(topics)

    def replication_factors(self, topics: Collection[str]) -> Mapping[str, int]:
        """Count the replicas of these topics, of those that exist."""
        timeout_s = self._timeout_s
        metadata = self._cluster.ask(
            "describe topics", lambda connection: request_metadata(connection, topics, timeout_s)
        )
        return metadata.replicas

    def await_partitions(self, counts: Mapping[str, int], timeout_s: float) -> Mapping[str, int]:
        """`partition_counts`, once it holds what was just created or grown, or after the time."""
        deadline = self._network.time() + timeout_s
        while True:
            asked = self._network.time()
            seen = self.partition_counts()
            if all(seen.get(topic, 0) >= count for topic, count in counts.items()):
                return seen
            responded = self._network.time()
            if responded > deadline:
                return seen
            # With thousands of topics the response itself is work for brokers that are busy with new topics.
            self._network.sleep(max(_VISIBLE_POLL_S, 2 * (responded - asked)))

    def topic_configs(
        self, topics: Collection[str], names: Collection[str] = ()
    ) -> Mapping[str, tuple[ConfigEntry, ...]]:
        """Describe topic configs like `known_topic_configs`, but raise the first topic's KafkaError."""
        known = self.known_topic_configs(topics, names)
        for error in known.errors.values():
            raise error
        return known.configs

    def known_topic_configs(self, topics: Collection[str], names: Collection[str] = ()) -> TopicConfigs:
        """Configs of these topics, defaults included: those of these names, all if none are given.

        Topics that don't exist are left out.
        """
        found = TopicConfigs({}, {})
        for described in self._configs.describe(topics, names):
            if described.error == 0:
                found.configs[described.topic] = described.entries
            elif described.error != UNKNOWN_TOPIC_OR_PARTITION:
                found.errors[described.topic] = self._cluster.error(
                    described.error,
                    f"describe configs of topic {described.topic}",
                    Need.DESCRIBE_TOPIC_CONFIGS.of(described.topic),
                    message=described.message,
                )
        return found

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        results: dict[str, KafkaError | None] = {}
        for some in _portions(topics, lambda topic: 1 + topic.partitions + len(topic.configs)):
            results |= self._create(some)
        return results

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to these total partition counts."""
        results: dict[str, KafkaError | None] = {}
        for some in _portions(counts.items(), lambda topic: topic[1]):
            results |= self._grow(dict(some))
        return results

    def delete_topics(self, topics: Mapping[str, bytes]) -> Results:
        """Delete topics by id, so that no other topic of that name is deleted; by name if the id is empty."""
        results: dict[str, KafkaError | None] = {}
        for some in _portions(topics.items(), lambda _: 1):
            results |= self._delete(dict(some))
        return results

    def alter_configs(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        """Incrementally (KIP-339). Raises UnsupportedVersionError for brokers before 2.3."""
        results: dict[str, KafkaError | None] = {}
        for some in _portions(changes.items(), lambda change: len(change[1])):
            results |= self._alter(dict(some))
        return results

    def _create(self, topics: Sequence[TopicCreation]) -> Results:
        topic_class = CreateTopicsRequest.CreatableTopic
        request = CreateTopicsRequest(
            topics=[
                topic_class(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    assignments=[],
                    configs=[
                        topic_class.CreatableTopicConfig(name=name, value=value)
                        for name, value in topic.configs.items()
                    ],
                )
                for topic in topics
            ],
            timeout_ms=int(self._timeout_s * 1000),
            validate_only=self._checks_only,
        )
        has_defaults = any(-1 in (topic.partitions, topic.replication_factor) for topic in topics)

        def create(connection: Connection) -> Any:
            if has_defaults:  # KIP-464
                connection.version_of(CreateTopicsRequest.API_KEY, "CreateTopics", _DEFAULTS_FROM, 99)
            return connection.request(request, CreateTopicsResponse, timeout_s=self._timeout_s)

        response = self._cluster.ask("create topics", create, Role.CONTROLLER)
        return {
            topic.name: self._result("create topic", topic.name, topic, Need.CREATE_TOPIC)
            for topic in response.topics
        }

    def _grow(self, counts: Mapping[str, int]) -> Results:
        topic_class = CreatePartitionsRequest.CreatePartitionsTopic
        request = CreatePartitionsRequest(
            topics=[topic_class(name=name, count=count, assignments=None) for name, count in counts.items()],
            timeout_ms=int(self._timeout_s * 1000),
            validate_only=self._checks_only,
        )
        response = self._cluster.request(
            "create partitions", request, CreatePartitionsResponse, Role.CONTROLLER
        )
        return {
            result.name: self._result("create partitions of", result.name, result, Need.GROW_TOPIC)
            for result in response.results
        }

    def _delete(self, topics: Mapping[str, bytes]) -> Results:
        by_id = {id_: name for name, id_ in topics.items() if id_}
        topic_class = DeleteTopicsRequest.DeleteTopicState
        request = DeleteTopicsRequest(
            topics=[
                topic_class(topic_id=uuid.UUID(bytes=id_)) if id_ else topic_class(name=name)
                for name, id_ in topics.items()
            ],
            timeout_ms=int(self._timeout_s * 1000),
        )
        response = self._cluster.request("delete topics", request, DeleteTopicsResponse, Role.CONTROLLER)
        results: dict[str, KafkaError | None] = {}
        for topic in response.responses:
            # A broker that doesn't know the id, or may not show the topic, responds without the name.
            name = topic.name or by_id[topic.topic_id.bytes]
            results[name] = self._result("delete topic", name, topic, Need.DELETE_TOPIC)
        return results

    def _alter(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        request = IncrementalAlterConfigsRequest(
            resources=[
                resource(
                    resource_type=_TOPIC_CONFIGS,
                    resource_name=topic,
                    configs=[
                        resource.AlterableConfig(name=one.name, config_operation=one.op, value=one.value)
                        for one in operations
                    ],
                )
                for topic, operations in changes.items()
            ],
            validate_only=self._checks_only,
        )
        response = self._cluster.request("alter topic configs", request, IncrementalAlterConfigsResponse)
        need = Need.ALTER_TOPIC_CONFIGS
        return {
            result.resource_name: self._result("alter configs of", result.resource_name, result, need)
            for result in response.responses
        }

    def acls(self, resource_type: ResourceType = ResourceType.ANY) -> Sequence[AclBinding]:
        """Describe ACLs; see `Acls.described`."""
        return self._acls.described(resource_type)

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return self._acls.create(bindings)

    def delete_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return self._acls.delete(bindings)

    def quotas(self) -> Quotas:
        """Describe quotas; see `Accounts.quotas`."""
        return self._accounts.quotas()

    def credentials(self, users: Collection[str]) -> Mapping[str, Sequence[ScramCredential]]:
        """Describe credentials; see `Accounts.credentials`."""
        return self._accounts.credentials(users)

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> QuotaResults:
        return self._accounts.alter_quotas(changes)

    def alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:
        return self._accounts.alter_users(credentials)

    def _result(self, action: str, topic: str, result: Any, need: Need) -> KafkaError | None:
        if not result.error_code:
            return None
        return self._cluster.error(
            result.error_code, f"{action} {topic}", need.of(topic), message=result.error_message
        )


def _portions(items: Iterable[_Item], records: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """Split items into requests, each as large as the controller accepts, with at least one item."""
    some: list[_Item] = []
    size = 0
    for item in items:
        if some and size + records(item) > _RECORDS_PER_REQUEST:
            yield some
            some, size = [], 0
        some.append(item)
        size += records(item)
    if some:
        yield some
