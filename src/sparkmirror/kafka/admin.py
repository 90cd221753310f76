"""Topics, configs, ACLs, quotas and users of one cluster. Bulk calls return a result per item."""

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafka.protocol.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

from sparkmirror.domain.acls import AclBinding, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.listed_topics import ListedTopic, TopicListing
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.accounts import Accounts
from sparkmirror.kafka.acls import Acls
from sparkmirror.kafka.clients import LibraryAdmin
from sparkmirror.kafka.cluster import AnyBroker
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION, Needed, error_for
from sparkmirror.kafka.topic_configs import TopicConfigsReader
from sparkmirror.kafka.topic_listing import TopicLister
from sparkmirror.policies.accounts import QuotaChange, Quotas, SaltedCredential, ScramCredential
from sparkmirror.policies.admin_writes import AclResults, QuotaResults, Results, TopicCreation
from sparkmirror.policies.config_filter import AlterConfigOp, ConfigEntry

_TOPIC_CONFIGS = 2
"""As Kafka numbers the resources that have configs."""
_VISIBLE_POLL_S = 0.05
_RECORDS_PER_REQUEST = 2000
"""Of the metadata log: KRaft's controller refuses a request that would make more than 10,000."""

_Item = TypeVar("_Item")


class TopicConfigs(NamedTuple):
    """Of topics that exist; `untold` says why not, for those of which nothing can be said."""

    configs: dict[str, tuple[ConfigEntry, ...]]
    untold: dict[str, KafkaError]


class Admin:
    """Reads, and is `AdminWrites`. Every method blocks and raises KafkaError when all failed. One owner."""

    def __init__(self, settings: ConnectionSettings, cluster: str, *, checks_only: bool = False) -> None:
        """`cluster` names it in errors: an alias.

        `checks_only` lets brokers judge creations, growth and configs without doing anything of it.
        """
        self.cluster = cluster
        self._settings = settings
        self._checks_only = checks_only
        self._timeout_ms = int(settings.request_timeout_s * 1000)
        self._client = LibraryAdmin(settings, cluster)
        self._any_broker = AnyBroker(settings, cluster)
        self._lister = TopicLister(self._any_broker)
        self._configs = TopicConfigsReader(self._any_broker)
        self._acls = Acls(self._any_broker, settings)
        self._accounts = Accounts(self._any_broker, settings)

    @property
    def bootstrap_servers(self) -> str:
        """As a command's `--bootstrap-server` takes them."""
        return ",".join(f"{host}:{port}" for host, port in self._settings.bootstrap_servers)

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
            asked = time.monotonic()
            seen = self.partition_counts()
            if all(seen.get(topic, 0) >= count for topic, count in counts.items()):
                return seen
            answered = time.monotonic()
            if answered > deadline:
                return seen
            # With thousands of topics the answer itself is work, for brokers that are busy with the new ones.
            time.sleep(max(_VISIBLE_POLL_S, 2 * (answered - asked)))

    def topic_configs(
        self, topics: Collection[str], names: Collection[str] = ()
    ) -> Mapping[str, tuple[ConfigEntry, ...]]:
        """As `known_topic_configs`. Raises KafkaError for the first topic that can't be told of."""
        known = self.known_topic_configs(topics, names)
        for error in known.untold.values():
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
                context = f"describe topic configs on {self.cluster}: {described.topic}"
                needed = self._needed(Need.DESCRIBE_TOPIC_CONFIGS, described.topic)
                found.untold[described.topic] = error_for(described.error, context, described.message, needed)
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
            topic["name"]: self._result("create topic", topic["name"], topic, Need.CREATE_TOPIC)
            for topic in response["topics"]
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
            result.name: self._result("create partitions of", result.name, result.to_dict(), Need.GROW_TOPIC)
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
        answer = self._any_broker.request("alter topic configs", request, IncrementalAlterConfigsResponse)
        need = Need.ALTER_TOPIC_CONFIGS
        return {
            result.resource_name: self._result(
                "alter configs of", result.resource_name, result.to_dict(), need
            )
            for result in answer.responses
        }

    def acls(self, resource_type: ResourceType = ResourceType.ANY) -> Sequence[AclBinding]:
        """As `Acls.described`."""
        return self._acls.described(resource_type)

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return self._acls.create(bindings)

    def delete_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return self._acls.delete(bindings)

    def quotas(self) -> Quotas:
        """As `Accounts.quotas`."""
        return self._accounts.quotas()

    def credentials(self, users: Collection[str]) -> Mapping[str, Sequence[ScramCredential]]:
        """As `Accounts.credentials`."""
        return self._accounts.credentials(users)

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> QuotaResults:
        return self._accounts.alter_quotas(changes)

    def alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:
        return self._accounts.alter_users(credentials)

    def _result(self, action: str, topic: str, answer: Mapping[str, Any], need: Need) -> KafkaError | None:
        code = answer["error_code"]
        if not code:
            return None
        context = f"{action} {topic} on {self.cluster}"
        return error_for(code, context, answer.get("error_message"), self._needed(need, topic))

    def _needed(self, need: Need, topic: str) -> Needed:
        return Needed(self._settings, (need.of(topic),))


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
