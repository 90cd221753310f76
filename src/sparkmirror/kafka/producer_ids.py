"""Producer ids for idempotent writing (KIP-98)."""

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.error_codes import Needed, check
from sparkmirror.kafka.metadata import connect_to_any
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.transport import network_of


def new_producer_id(settings: ConnectionSettings) -> ProducerId:
    """A fresh id with epoch 0. Blocks; a broker that has just started has no ids for a moment.

    Raises AuthorizationError (brokers before 2.8), or RetriableError after the request's time-out.
    """
    retries = Retries(settings, network_of(settings).time() + settings.request_timeout_s)
    needed = Needed(settings, (Need.NUMBER_RECORDS.of(),))
    connection = connect_to_any(settings)
    try:
        while True:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
            response = connection.request(
                request, InitProducerIdResponse, timeout_s=settings.request_timeout_s, version_max=4
            )
            try:
                check(response.error_code, "InitProducerId on the target", needed)
            except RetriableError as error:
                retries.wait(error)
            else:
                return ProducerId(response.producer_id, response.producer_epoch)
    finally:
        connection.close()
