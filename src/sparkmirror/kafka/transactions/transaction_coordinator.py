"""Asks the coordinator of one transactional id, and looks it up again when it moves (KIP-98).

Handles the error codes by which brokers postpone a request or name another broker; `transactions` the rest.
"""

from collections.abc import Callable
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, FindCoordinatorRequest
from kafka.protocol.producer import EndTxnRequest

from sparkmirror import __version__
from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import (
    DisconnectedError,
    FencedError,
    KafkaError,
    RetriableError,
)
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster, CoordinatorKind
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    INVALID_TRANSACTION_TIMEOUT,
    NONE,
    NOT_COORDINATOR,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Needed,
    check,
    error_for,
    name_of,
)

MOVED = frozenset({COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
LATER = frozenset({*MOVED, COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS})
_FENCED = frozenset({INVALID_PRODUCER_EPOCH, PRODUCER_FENCED})

_API_VERSIONS = 18
_FEATURES_FROM = 3
_NEEDED_BY_VERSION_2 = {produce.API_KEY: produce.VERSION_ADDING_PARTITIONS, EndTxnRequest.API_KEY: 5}

# The markers of the transaction before are written within milliseconds, as a rule.
COMPLETING = Backoff(first_s=0.005, max_s=0.1)


class TransactionCoordinator:
    """Sends requests to the coordinator of one id, blocking. Connects on demand. Not thread-safe."""

    def __init__(self, settings: ConnectionSettings, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.settings = settings
        self._network = network_of(settings)
        self._cluster = Cluster(settings)
        self._connection: Connection | None = None
        self._finalized_version = 0
        self._opened_at = 0.0

    def ask(
        self,
        request: Any,
        response_class: Any,
        code_of: Callable[[Any], int],
        *,
        version_max: int,
        resends: bool = True,
    ) -> Any:
        """The first response that neither postpones the request nor names another broker, by `code_of` of it.

        Retries until the request's time-out has passed, then raises the RetriableError of the last attempt.
        Unless `resends`, a request that may have arrived is not sent again: the DisconnectedError is raised
        at once.
        """
        retries = Retries(self.settings)
        while True:
            connection = self._awaited(retries)
            try:
                response = connection.request(
                    request, response_class, timeout_s=retries.left_s, version_max=version_max
                )
            except DisconnectedError as error:
                self.close()
                if not resends:
                    raise
                retries.wait(error)
                continue
            code = code_of(response)
            if code not in LATER:
                return response
            if code in MOVED:
                self.close()
            completing = code == CONCURRENT_TRANSACTIONS
            retries.wait(self.error_for(code, request), COMPLETING if completing else None)

    def offers_version_2(self) -> bool:
        """Whether version 2 of transactions (KIP-890) is finalized, as of at most `metadata_max_age_s` ago.

        The coordinator's versions count for all brokers. Raises RetriableError.
        """
        connection = self._connected()
        return self._finalized_version >= 2 and all(
            connection.versions[api_key].high >= needed for api_key, needed in _NEEDED_BY_VERSION_2.items()
        )

    def error_for(self, code: int, request: Any) -> KafkaError:
        right = Need.TRANSACT.of(self.transactional_id)
        return coordinator_error(Needed(self.settings, (right,)), self.transactional_id, code, request)

    def close(self) -> None:
        """Close the connections; `ask` looks the coordinator up again."""
        self._cluster.close()
        self._connection = None

    def _awaited(self, retries: Retries) -> Connection:
        while True:
            try:
                return self._connected()
            except RetriableError as error:
                retries.wait(error)

    def _connected(self) -> Connection:
        """The connection, opened again before the broker may close it for idleness (10 min by default)."""
        now = self._network.time()
        if now - self._opened_at > self.settings.metadata_max_age_s:
            self.close()
        if self._connection is None:
            try:
                connection = self._found()
                self._finalized_version = self._ask_finalized(connection)
            except BaseException:
                self.close()
                raise
            self._connection = connection
            self._opened_at = now
        return self._connection

    def _found(self) -> Connection:
        found = self._cluster.coordinator(CoordinatorKind.TRANSACTION, self.transactional_id)
        if found.code != NONE:
            raise self.error_for(found.code, FindCoordinatorRequest)
        return self._cluster.connection(found.address)

    def _ask_finalized(self, connection: Connection) -> int:
        """The cluster's `transaction.version`; 0 where brokers have none."""
        offered = connection.versions.get(_API_VERSIONS)
        if offered is None or offered.high < _FEATURES_FROM:
            return 0
        version = __version__.replace("+", "-")  # KIP-511 has no plus
        request = ApiVersionsRequest(client_software_name="sparkmirror", client_software_version=version)
        response = connection.request(request, ApiVersionsResponse, timeout_s=self.settings.request_timeout_s)
        check(response.error_code, f"{connection.address}: ApiVersions")
        finalized = response.finalized_features or ()
        levels: dict[str, int] = {feature.name: feature.max_version_level for feature in finalized}
        return levels.get("transaction.version", 0)


def coordinator_error(needed: Needed, transactional_id: str, code: int, request: Any) -> KafkaError:
    """A FencedError, an AuthorizationError that names the ACL, or what `error_codes` makes of it."""
    context = f"transactional id {transactional_id}: {request.name.removesuffix('Request')}"
    if code in _FENCED:
        return FencedError(
            f"{context}: {name_of(code)}: another producer has taken over, "
            "or the transaction took longer than its time-out",
            code,
        )
    if code == TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return error_for(code, context, needed=needed)
    if code == INVALID_TRANSACTION_TIMEOUT:
        return error_for(code, context, "above transaction.max.timeout.ms of the brokers")
    if code == COORDINATOR_NOT_AVAILABLE:
        return error_for(
            code,
            context,
            "if it stays so, __transaction_state has no leader or can't be created: see "
            "transaction.state.log.replication.factor of the brokers",
        )
    return error_for(code, context)
