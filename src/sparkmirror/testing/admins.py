"""Tests for admin plug-ins, and a cluster in memory for them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from sparkmirror.config.admin_plugins import AdminPlugins
from sparkmirror.config.plugin_guard import methods_of
from sparkmirror.config.properties import Properties
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.errors import KafkaError, RetriableError
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, TopicCreation
from sparkmirror.policies.admin_writes import AdminWrites, ForwardingAdmin

_READ: Final = AclBinding(
    *(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*"),
    *(AclOperation.READ, AclPermission.ALLOW),
)
_ASKED: Final[Mapping[str, Any]] = {
    "create_topics": [TopicCreation("orders", 3, 2, {"retention.ms": "1000"})],
    "grow_topics": {"orders": 6},
    "alter_configs": {"orders": [AlterConfigOp("retention.ms", AlterConfigOpType.SET, "2000")]},
    "create_acls": [_READ],
}


class AskedAdmin:
    """A cluster that accepts every request and records it in `asked` by method and items."""

    def __init__(self, error: KafkaError | None = None) -> None:
        """Make an admin; every call raises `error` if it is given."""
        self.asked: list[tuple[str, Any]] = []
        self._error = error

    def __getattr__(self, method: str) -> Any:
        if method not in methods_of(AdminWrites):
            raise AttributeError(method)

        def call(items: Mapping[Any, Any] | Sequence[Any]) -> Mapping[Any, None]:
            if self._error is not None:
                raise self._error
            self.asked.append((method, items))
            return dict.fromkeys(item.name if isinstance(item, TopicCreation) else item for item in items)

        return call


class ForwardingAdminContract:
    """Tests a plug-in for `forwarding.admin.class`. Set `admin_class`; replace a control plane by a fake."""

    admin_class: ClassVar[type[ForwardingAdmin]]
    properties: ClassVar[Mapping[str, str]] = {}
    """Properties of the admin client: `bootstrap.servers` and the keys below `admin.`."""

    def admin(self, cluster: AskedAdmin) -> AdminWrites:
        properties = Properties({"bootstrap.servers": "localhost:9092", **self.properties})
        plugins = AdminPlugins(self.admin_class.__name__, self.admin_class, {"eu": properties})
        return plugins.over(cast("AdminWrites", cluster), "eu")

    def test_every_request_succeeds(self) -> None:
        for method, items in _ASKED.items():
            results = getattr(self.admin(AskedAdmin()), method)(items)
            failed = [str(error) for error in results.values() if error is not None]
            assert not failed, f"{method}: {failed}"

    def test_empty_requests_write_nothing(self) -> None:
        cluster = AskedAdmin()
        for method, items in _ASKED.items():
            results = getattr(self.admin(cluster), method)(type(items)())
            assert not results, f"{method} of no items returned {results}"
        written = [method for method, items in cluster.asked if items]
        assert not written, f"without items, it wrote to the cluster: {written}"

    def test_results_are_those_of_the_requested_items(self) -> None:
        for method, items in _ASKED.items():
            results = getattr(self.admin(AskedAdmin()), method)(items)
            expected = {item.name if isinstance(item, TopicCreation) else item for item in items}
            assert results.keys() == expected, f"{method} of {expected} returned results for {set(results)}"

    def test_unreachable_cluster_raises_only_kafka_errors(self) -> None:
        for method, items in _ASKED.items():
            away = AskedAdmin(RetriableError("no response"))
            try:
                getattr(self.admin(away), method)(items)
            except KafkaError:
                continue  # the request as a whole failed
