"""Topics, configs and ACLs of one cluster. Bulk calls return a result per item."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

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
from sparkmirror.domain.config_filter import AlterConfigOp, ConfigEntry, ConfigSource
from sparkmirror.domain.errors import KafkaError
from sparkmirror.kafka.clients import LibraryAdmin
from sparkmirror.kafka.error_codes import error_for

_VISIBLE_POLL_S = 0.05


class Admin:
    """Reads, and is `AdminWrites`. Every method blocks and raises KafkaError when all failed. One owner."""

    def __init__(self, settings: ConnectionSettings, cluster: str) -> None:
        """`cluster` names it in errors: an alias."""
        self._cluster = cluster
        self._timeout_ms = int(settings.request_timeout_s * 1000)
        self._client = LibraryAdmin(settings, cluster)

    def close(self) -> None:
        self._client.close()

    def partition_counts(self) -> Mapping[str, int]:
        """Every topic that isn't internal to the brokers."""
        topics = self._client.call("list topics", "describe_topics")
        return {
            topic["name"]: len(topic["partitions"])
            for topic in topics
            if not topic["error_code"] and not topic["is_internal"]
        }

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
        """Configs of these topics, defaults included: those of these names, all if none are given."""
        if not topics:
            return {}
        wanted = dict.fromkeys(names) or None
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, wanted) for topic in topics]
        described = self._client.call(
            "describe topic configs", "describe_configs", resources, config_filter="all"
        )
        return {
            topic: [_config_entry(name, config) for name, config in configs.items()]
            for topic, configs in described.get("topic", {}).items()
        }

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        if not topics:
            return {}
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
            raise_errors=False,
        )
        return {
            topic["name"]: self._result("create topic", topic["name"], topic) for topic in response["topics"]
        }

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to these total partition counts."""
        if not counts:
            return {}
        response = self._client.call(
            "create partitions",
            "create_partitions",
            dict(counts),
            timeout_ms=self._timeout_ms,
            raise_errors=False,
        )
        return {
            result.name: self._result("create partitions of", result.name, result.to_dict())
            for result in response.results
        }

    def alter_configs(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        """Incrementally (KIP-339). Raises UnsupportedVersionError for brokers before 2.3."""
        if not changes:
            return {}
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


def _config_entry(name: str, config: Mapping[str, Any]) -> ConfigEntry:
    return ConfigEntry(
        name,
        config["value"],
        ConfigSource[config["config_source"]],
        is_read_only=config["read_only"],
        is_sensitive=config["is_sensitive"],
    )


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
