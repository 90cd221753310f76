"""Topics, configs and ACLs of one cluster. Bulk calls return a result per item."""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as LibraryResourceType

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.admin_writes import AclResults, Results, TopicCreation
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.config_filter import AlterConfigOp, ConfigEntry
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.listed_topics import ListedTopic, TopicListing
from sparkmirror.kafka.any_broker import AnyBroker
from sparkmirror.kafka.clients import LibraryAdmin
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION, error_for
from sparkmirror.kafka.topic_configs import TopicConfigsReader
from sparkmirror.kafka.topic_listing import TopicLister

_VISIBLE_POLL_S = 0.05
_RECORDS_PER_REQUEST = 2000
"""Of the metadata log: KRaft's controller refuses a request that would make more than 10,000."""

_Item = TypeVar("_Item")


class Admin:
    """Reads, and is `AdminWrites`. Every method blocks and raises KafkaError when all failed. One owner."""

    def __init__(self, settings: ConnectionSettings, cluster: str, *, checks_only: bool = False) -> None:
        """`cluster` names it in errors: an alias.

        `checks_only` lets brokers judge creations, growth and configs without doing anything of it.
        """
        self._cluster = cluster
        self._checks_only = checks_only
        self._timeout_ms = int(settings.request_timeout_s * 1000)
        self._client = LibraryAdmin(settings, cluster)
        self._any_broker = AnyBroker(settings, cluster)
        self._lister = TopicLister(self._any_broker)
        self._configs = TopicConfigsReader(self._any_broker)

    def close(self) -> None:
        self._client.close()
        self._any_broker.close()

    def listing(self) -> TopicListing:
        """Every topic: the same object as before while nothing has changed."""
        return self._lister.read()

    def partition_counts(self) -> Mapping[str, int]:
        """Every topic that isn't internal to the brokers."""
        return self.listing().counts

    def named(self, topics: Collection[str]) -> Mapping[str, ListedTopic]:
        """What is said of each of these: a topic that is missing and one that may not be seen differ."""
        return self._lister.named(topics)

    def await_partitions(self, counts: Mapping[str, int], timeout_s: float) -> Mapping[str, int]:
        """`partition_counts`, once it holds what was just created or grown, or after the time."""
        deadline = time.monotonic() + timeout_s
        while True:
            seen = self.partition_counts()
            if all(seen.get(topic, 0) >= count for topic, count in counts.items()):
                return seen
            if time.monotonic() > deadline:
                return seen
            time.sleep(_VISIBLE_POLL_S)

    def topic_configs(
        self, topics: Collection[str], names: Collection[str] = ()
    ) -> Mapping[str, Sequence[ConfigEntry]]:
        """Configs of these topics, defaults included: those of these names, all if none are given.

        Topics that don't exist are left out. Raises KafkaError for the first that can't be told of.
        """
        found: dict[str, Sequence[ConfigEntry]] = {}
        for described in self._configs.describe(topics, names):
            if described.error == 0:
                found[described.topic] = described.entries
            elif described.error != UNKNOWN_TOPIC_OR_PARTITION:
                context = f"describe topic configs on {self._cluster}: {described.topic}"
                raise error_for(described.error, context, described.message)
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
        """By their ids, so that no other topic of the name is deleted; by name where the id is empty."""
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

    def _create(self, topics: Iterable[TopicCreation]) -> Results:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "configs": dict(topic.configs),
            }
            for topic in topics
        }
        response = self._client.call(
            "create topics",
            "create_topics",
            wanted,
            timeout_ms=self._timeout_ms,
            validate_only=self._checks_only,
            raise_errors=False,
        )
        return {
            topic["name"]: self._result("create topic", topic["name"], topic) for topic in response["topics"]
        }

    def _grow(self, counts: dict[str, int]) -> Results:
        response = self._client.call(
            "create partitions",
            "create_partitions",
            counts,
            timeout_ms=self._timeout_ms,
            validate_only=self._checks_only,
            raise_errors=False,
        )
        return {
            result.name: self._result("create partitions of", result.name, result.to_dict())
            for result in response.results
        }

    def _delete(self, topics: Mapping[str, bytes]) -> Results:
        wanted = {name: uuid.UUID(bytes=id_) if id_ else name for name, id_ in topics.items()}
        names = {str(key): name for name, key in wanted.items()}
        response = self._client.call(
            "delete topics",
            "delete_topics",
            list(wanted.values()),
            timeout_ms=self._timeout_ms,
            raise_errors=False,
        )
        results: dict[str, KafkaError | None] = {}
        for topic in response["topics"]:
            # A broker that doesn't know the id, or may not tell, answers without the name.
            name = topic["name"] or names[str(topic["topic_id"])]
            results[name] = self._result("delete topic", name, topic)
        return results

    def _alter(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        resources = [
            ConfigResource(
                ConfigResourceType.TOPIC,
                topic,
                {operation.name: (int(operation.op), operation.value) for operation in operations},
            )
            for topic, operations in changes.items()
        ]
        response = self._client.call(
            "alter topic configs",
            "alter_configs",
            resources,
            validate_only=self._checks_only,
            raise_on_unknown=False,
            incremental=True,
        )
        return {
            topic: None
            if result == "OK"
            else KafkaError(f"alter configs of {topic} on {self._cluster}: {result}")
            for topic, result in response.get("topic", {}).items()
        }

    def topic_acls(self) -> Sequence[AclBinding]:
        """All TOPIC bindings. A KafkaError of code SECURITY_DISABLED says that there is no authorizer."""
        everything = ACLFilter(
            principal=None,
            host=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(
                LibraryResourceType.TOPIC, None, ACLResourcePatternType.ANY
            ),
        )
        acls, _ = self._client.call("describe ACLs", "describe_acls", everything)
        return [_binding(acl) for acl in acls]

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        if not bindings:
            return {}
        asked = {_acl(binding): binding for binding in bindings}
        answer = self._client.call("create ACLs", "create_acls", list(asked))
        made = {asked[acl] for acl in answer["succeeded"]}
        # The library doesn't say which were refused, but keeps their order.
        refused = (binding for binding in asked.values() if binding not in made)
        errors = {
            binding: error_for(error.errno, f"create ACL {binding} on {self._cluster}")
            for binding, error in zip(refused, answer["failed"], strict=True)
        }
        return {binding: errors.get(binding) for binding in bindings}

    def _result(self, action: str, topic: str, answer: Mapping[str, Any]) -> KafkaError | None:
        code = answer["error_code"]
        if not code:
            return None
        return error_for(code, f"{action} {topic} on {self._cluster}", answer.get("error_message"))


def _portions(items: Iterable[_Item], records: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """What goes into a request each: as much as the controller takes, and one at least."""
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


def _binding(acl: Any) -> AclBinding:
    pattern = acl.resource_pattern
    return AclBinding(
        ResourceType(int(pattern.resource_type)),
        PatternType(int(pattern.pattern_type)),
        pattern.resource_name,
        acl.principal,
        acl.host,
        AclOperation(int(acl.operation)),
        AclPermission(int(acl.permission_type)),
    )


def _acl(binding: AclBinding) -> Any:
    return ACL(
        principal=binding.principal,
        host=binding.host,
        operation=ACLOperation(binding.operation),
        permission_type=ACLPermissionType(binding.permission),
        resource_pattern=ResourcePattern(
            LibraryResourceType(binding.resource_type),
            binding.resource_name,
            ACLResourcePatternType(binding.pattern_type),
        ),
    )
