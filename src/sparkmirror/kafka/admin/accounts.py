"""Describes and alters client quotas and SCRAM users of one cluster. Bulk calls return a result per item."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

from sparkmirror.domain.accounts import (
    QuotaChange,
    QuotaEntity,
    Quotas,
    SaltedCredential,
    ScramCredential,
    ScramMechanism,
)
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster, Role
from sparkmirror.kafka.wire.error_codes import NONE
from sparkmirror.policies.admin_writes import QuotaResults, Results

_RESOURCE_NOT_FOUND: Final = 91
_KNOWN_MECHANISMS: Final = frozenset(ScramMechanism)


class Accounts:
    """Every method blocks and raises KafkaError when a request as a whole failed. One owner."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def quotas(self) -> Quotas:
        """Describe the quotas of every entity. Raises UnsupportedVersionError for brokers before 2.6."""
        action = "describe client quotas"
        request = DescribeClientQuotasRequest(components=[], strict=False)
        response = self._cluster.request(action, request, DescribeClientQuotasResponse)
        if response.error_code != NONE:
            raise self._error(action, response, Need.DESCRIBE_QUOTAS)
        return {
            _entity(entry.entity): {value.key: float(value.value) for value in entry.values}
            for entry in response.entries or ()
        }

    def credentials(self, users: Collection[str]) -> Mapping[str, Sequence[ScramCredential]]:
        """Describe these users' credentials; a user may have none.

        Raises UnsupportedVersionError before 2.7.
        """
        if not users:
            return {}
        action = "describe SCRAM users"
        named = [DescribeUserScramCredentialsRequest.UserName(name=user) for user in sorted(users)]
        request = DescribeUserScramCredentialsRequest(users=named)
        response = self._cluster.request(action, request, DescribeUserScramCredentialsResponse)
        if response.error_code != NONE:
            raise self._error(action, response, Need.DESCRIBE_USERS)
        for result in response.results:
            if result.error_code not in (NONE, _RESOURCE_NOT_FOUND):
                raise self._error(f"describe SCRAM user {result.user}", result, Need.DESCRIBE_USERS)
        return {
            result.user: sorted(
                (
                    ScramCredential(result.user, ScramMechanism(info.mechanism), info.iterations)
                    for info in result.credential_infos or ()
                    if info.mechanism in _KNOWN_MECHANISMS
                ),
                key=lambda credential: credential.mechanism,
            )
            for result in response.results
        }

    def alter_quotas(self, changes: Sequence[QuotaChange]) -> QuotaResults:
        if not changes:
            return {}
        response = self._cluster.request(
            "alter client quotas", _quotas_request(changes), AlterClientQuotasResponse
        )
        results: dict[QuotaEntity, KafkaError | None] = {}
        for entry in response.entries:
            entity = _entity(entry.entity)
            failed = entry.error_code != NONE
            action = f"alter quotas of {entity}"
            results[entity] = self._error(action, entry, Need.ALTER_QUOTAS) if failed else None
        return results

    def alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:
        """Alter credentials. The result holds the first refusal for each user."""
        results: dict[str, KafkaError | None] = {}
        for one_of_each in _rounds(credentials):
            for user, error in self._alter_users(one_of_each).items():
                results[user] = results.get(user) or error
        return results

    def _alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:
        request = AlterUserScramCredentialsRequest(
            deletions=[],
            upsertions=[
                AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                    name=one.credential.user,
                    mechanism=one.credential.mechanism,
                    iterations=one.credential.iterations,
                    salt=one.salt,
                    salted_password=one.salted_password,
                )
                for one in credentials
            ],
        )
        response = self._cluster.request(
            "alter SCRAM users", request, AlterUserScramCredentialsResponse, Role.CONTROLLER
        )
        return {
            result.user: None
            if result.error_code == NONE
            else self._error(f"alter SCRAM user {result.user}", result, Need.ALTER_USERS)
            for result in response.results
        }

    def _error(self, action: str, response: Any, need: Need) -> KafkaError:
        return self._cluster.error(response.error_code, action, need.of(), message=response.error_message)


def _rounds(credentials: Sequence[SaltedCredential]) -> Iterator[Sequence[SaltedCredential]]:
    """Brokers take one credential of a user in a request, whatever its mechanism."""
    left = list(credentials)
    while left:
        first = {one.credential.user: one for one in reversed(left)}
        yield list(first.values())
        left = [one for one in left if first[one.credential.user] is not one]


def _entity(parts: Sequence[Any]) -> QuotaEntity:
    return QuotaEntity(tuple(sorted((part.entity_type, part.entity_name) for part in parts)))


def _quotas_request(changes: Sequence[QuotaChange]) -> Any:
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[
                    entry.EntityData(entity_type=kind, entity_name=name) for kind, name in change.entity.names
                ],
                ops=[entry.OpData(key=key, value=value, remove=False) for key, value in change.values],
            )
            for change in changes
        ],
        validate_only=False,
    )
