"""Lists transactional ids with an open transaction (ListTransactions, KIP-664)."""

from typing import Final

from kafka.protocol.admin import ListTransactionsRequest, ListTransactionsResponse

from sparkmirror.domain.errors import UnsupportedVersionError
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster

_OPEN: Final = "Ongoing"


def open_transactions(cluster: Cluster, prefix: str) -> list[str] | None:
    """The ids that begin so, of those that this principal may describe; None where brokers are too old.

    Raises KafkaError when a broker does not answer.
    """
    found: set[str] = set()
    for broker in cluster.brokers("list transactions"):
        request = ListTransactionsRequest(state_filters=[_OPEN])
        try:
            response = cluster.request("list transactions", request, ListTransactionsResponse, broker)
        except UnsupportedVersionError:
            return None
        if response.error_code:
            raise cluster.error(response.error_code, "list transactions", Need.TRANSACT.of(prefix))
        found.update(state.transactional_id for state in response.transaction_states)
    return sorted(each for each in found if each.startswith(prefix))
