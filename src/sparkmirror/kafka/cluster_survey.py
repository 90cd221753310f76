"""Asks a cluster which brokers it has, what they speak, and what we may do there (KIP-430)."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from sparkmirror.domain.acls import AclOperation
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.cluster_survey import ApiRange, ClusterSurvey, Operations, SurveyedBroker
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.rights import principal_of
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED
from sparkmirror.kafka.metadata import connect_to_any

_VERSION_MAX: Final = 10
"""The last that tells the rights on the cluster too (KIP-700)."""
_NOT_TOLD: Final = 31
"""The one bit of what brokers answer instead of operations."""


def survey(settings: ConnectionSettings, alias: Alias, topics: Collection[str]) -> ClusterSurvey:
    """One request for everything, and a connection to each broker. The topics need not exist.

    Raises DisconnectedError when nobody answers.
    """
    with closing(connect_to_any(settings)) as connection:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in sorted(topics)],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        response = connection.request(
            request, MetadataResponse, timeout_s=settings.request_timeout_s, version_max=_VERSION_MAX
        )
    return ClusterSurvey(
        alias,
        response.cluster_id or "",
        principal_of(settings),
        bootstrap_text(settings),
        tuple(_brokers(settings, response.brokers)),
        _operations(response),
        _by_topic(response.topics),
        {topic.name: topic.error_code for topic in response.topics},
    )


def bootstrap_text(settings: ConnectionSettings) -> str:
    """As an option of Kafka's tools takes it."""
    return ",".join(
        f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in settings.bootstrap_servers
    )


def _brokers(settings: ConnectionSettings, brokers: Iterable[Any]) -> Iterable[SurveyedBroker]:
    """Who can't be reached is counted, and nothing is said of what it speaks."""
    for broker in brokers:
        versions: Mapping[int, ApiRange] = {}
        try:
            with closing(Connection.open(broker.host, broker.port, settings)) as connection:
                versions = {key: ApiRange(*offered) for key, offered in connection.versions.items()}
        except DisconnectedError:
            pass
        yield SurveyedBroker(f"{broker.host}:{broker.port}", versions)


def _by_topic(topics: Iterable[Any]) -> Mapping[str, Operations]:
    """Who may not even see a topic may do nothing with it that needs more."""
    found = {}
    for topic in topics:
        known = frozenset() if topic.error_code == TOPIC_AUTHORIZATION_FAILED else _operations(topic)
        if known is not None:
            found[topic.name] = known
    return found


def _operations(told: Any) -> Operations | None:
    """None where they aren't told. A cluster tells none at all to those who may not DESCRIBE it."""
    known = getattr(told, "authorized_operations", None)
    if not known or _NOT_TOLD in known:
        return None
    named = frozenset(AclOperation)
    return frozenset(AclOperation(number) for number in known if number in named)
