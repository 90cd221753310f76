"""Producer ids for idempotent writing (KIP-98)."""

from typing import NamedTuple

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.kafka.error_codes import check
from sparkmirror.kafka.metadata import Metadata, connect_to_any


class ProducerId(NamedTuple):
    id: int
    epoch: int


NOT_IDEMPOTENT = ProducerId(-1, -1)
"""What a batch carries when the principal may not write idempotently."""


def new_producer_id(settings: ConnectionSettings) -> ProducerId:
    """A fresh id with epoch 0. Raises AuthorizationError (brokers before 2.8) or RetriableError."""
    connection = connect_to_any(settings, Metadata())
    try:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        response = connection.request(
            request, InitProducerIdResponse, timeout_s=settings.request_timeout_s, version_max=4
        )
    finally:
        connection.close()
    check(response.error_code, "InitProducerId on the target")
    return ProducerId(response.producer_id, response.producer_epoch)
