"""Runs the transactions of one transactional id, one after another (KIP-98, KIP-360, KIP-890).

Owns the id's producer id and epoch, and asks the coordinator to add partitions and to end transactions. The
records are produced elsewhere, under the producer id and epoch that `init` and `end` return.
"""

from collections.abc import Collection
from contextlib import closing
from typing import Any

from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId
from sparkmirror.batches.record_batch import NO_PRODUCER_ID
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    DisconnectedError,
    FencedError,
    KafkaError,
    UnclearTransactionError,
)
from sparkmirror.domain.ids import TopicPartition, numbers_by_topic
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.transactions.transaction_coordinator import TransactionCoordinator
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import NONE, TOPIC_AUTHORIZATION_FAILED, Needed, error_for

_INIT_VERSION_MAX = 5
_ADD_VERSION_MAX = 3
"""Later versions are for requests between brokers."""

_END_VERSION_MAX = {False: 4, True: 5}
"""The request versions, by whether version 2 of the transaction protocol is used."""

_OPERATION_NOT_ATTEMPTED = 55


class Transactions:
    """Runs transactions, blocking: `init`, then `add`, Produce and `end` in turn. Not thread-safe.

    Under version 2 the response to Produce is CONCURRENT_TRANSACTIONS while the transaction before is being
    completed, and Produce must be sent again; under version 1 `add` waits for that.

    After an error of `end`, and after an UnclearTransactionError of `add`, nothing but `init` and `close` may
    be called; it raises an UnclearTransactionError.
    """

    def __init__(self, settings: ConnectionSettings, transactional_id: str, timeout_s: float) -> None:
        """`timeout_s` is `transaction.timeout.ms`: the coordinator aborts what is open for longer."""
        self.transactional_id = transactional_id
        self.is_version_2 = False
        """Whether this transaction is one of KIP-890: partitions are added by Produce, epochs by `end`."""
        self._timeout_s = timeout_s
        self._coordinator = TransactionCoordinator(settings, transactional_id)
        self._producer = NOT_IDEMPOTENT
        self._is_clear = self._may_be_open = False
        self._partitions: set[TopicPartition] = set()

    @property
    def produce_version_max(self) -> int:
        """The highest version of Produce; under version 2 also the lowest, because it adds partitions."""
        return produce.VERSION_ADDING_PARTITIONS if self.is_version_2 else produce.VERSION_HIGH

    def init(self, *, take_over: bool = False) -> ProducerId:
        """The producer id and epoch to use next; sequences start at 0. An open transaction is aborted.

        The first call takes the id over from its former producer and fences it. Later ones settle an unclear
        result, and raise FencedError if another producer has taken over since (KIP-360), so that a zombie
        can't fence its successor; `take_over` is for callers that are certainly not zombies. Waits while a
        transaction is completed. Raises FencedError, AuthorizationError, RetriableError, KafkaError.
        """
        self._is_clear = False
        if take_over:
            self._producer = NOT_IDEMPOTENT
        elif self._may_be_open:
            self._producer = self._abort(self._producer)
        # If the response to the next request is lost, our epoch would seem to be fenced in another EndTxn.
        self._may_be_open = False
        self._producer = _init(self._coordinator, self._timeout_s, self._producer)
        self._may_be_open = True
        self.is_version_2 = self._coordinator.offers_version_2()
        self._partitions.clear()
        self._is_clear = True
        return self._producer

    def resume(
        self, producer: ProducerId, partitions: Collection[TopicPartition], *, is_version_2: bool
    ) -> None:
        """Continue a transaction that another process has begun and added these partitions to.

        Nothing is fenced: if another producer has taken the id over since, `add` and `end` raise FencedError.
        """
        self._producer = producer
        self._partitions = set(partitions)
        self.is_version_2 = is_version_2
        self._is_clear = self._may_be_open = True

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Call this before the first Produce to these in a transaction; version 2 sends nothing.

        Waits while the transaction before is completed. Nothing was added, and the transaction may continue
        or be ended, after an AuthorizationError, RetriableError or KafkaError. Raises FencedError and
        UnclearTransactionError too.
        """
        self._check_clear()
        new = set(partitions) - self._partitions
        if new and not self.is_version_2:
            try:
                self._send_added(new)
            except DisconnectedError as error:
                # It may arrive late and add them to the next transaction.
                self._is_clear = False
                raise self._unclear(str(error)) from error
        self._partitions |= new

    def end(self, *, commit: bool) -> ProducerId:
        """The producer id and epoch to use next.

        Under version 2 the epoch is another one and sequences start at 0; under version 1 both continue. A
        transaction without partitions is none: nothing is sent. Call it when all of its Produce requests
        have their responses. Raises FencedError, AuthorizationError, and UnclearTransactionError for
        everything else, even if the outcome can be guessed.
        """
        self._check_clear()
        if not self._partitions:
            return self._producer
        self._is_clear = False
        try:
            self._producer = self._ended(self._producer, commit=commit)
            if self.is_version_2 != self._coordinator.offers_version_2():
                return self.init()
        except (FencedError, AuthorizationError):
            raise
        except KafkaError as error:
            raise self._unclear(str(error), error.code) from error
        self._partitions.clear()
        self._is_clear = True
        return self._producer

    def close(self) -> None:
        """An open transaction stays open until its time-out, or until another producer calls `init`."""
        self._coordinator.close()

    def _check_clear(self) -> None:
        if not self._is_clear:
            raise self._unclear("not initialised since it started or failed")

    def _unclear(self, reason: str, code: int = NONE) -> UnclearTransactionError:
        context = f"transactional id {self.transactional_id}: "
        return UnclearTransactionError(
            f"{context}{reason.removeprefix(context)}; initialise it again and read the positions again", code
        )

    def _abort(self, producer: ProducerId) -> ProducerId:
        """Abort a transaction that may be open: only EndTxn checks the epoch while a transaction is open.

        InitProducerId would abort a successor's transaction before it responds that this producer is fenced.
        """
        try:
            return self._aborted(producer)
        except (FencedError, AuthorizationError):
            raise
        except KafkaError as error:
            if error.retriable:
                raise
            return producer  # nothing is open

    def _aborted(self, producer: ProducerId) -> ProducerId:
        """Ask twice, since a fenced producer is fenced for every coordinator.

        A coordinator that has just moved away may still serve: if it could not record that the transaction
        before is complete, its response is PRODUCER_FENCED as well.
        """
        try:
            return self._ended(producer, commit=False, resends=True)
        except FencedError:
            self._coordinator.close()
            return self._ended(producer, commit=False, resends=True)

    def _ended(self, producer: ProducerId, *, commit: bool, resends: bool = False) -> ProducerId:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        response = self._coordinator.ask(
            request,
            EndTxnResponse,
            _error_code,
            version_max=_END_VERSION_MAX[self.is_version_2],
            resends=resends,
        )
        if response.error_code != NONE:
            raise self._coordinator.error_for(response.error_code, request)
        if response.producer_id == NO_PRODUCER_ID:
            return producer  # before v5
        return ProducerId(response.producer_id, response.producer_epoch)

    def _send_added(self, partitions: Collection[TopicPartition]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer.id,
            v3_and_below_producer_epoch=self._producer.epoch,
            v3_and_below_topics=_by_topic(partitions),
        )
        response = self._coordinator.ask(
            request, AddPartitionsToTxnResponse, _worst, version_max=_ADD_VERSION_MAX, resends=False
        )
        code = _worst(response)
        if code == TOPIC_AUTHORIZATION_FAILED:
            refused = sorted({topic for (topic, _), result in _results(response).items() if result == code})
            raise error_for(
                code,
                f"transactional id {self.transactional_id}: AddPartitionsToTxn",
                ", ".join(refused),
                Needed(self._coordinator.settings, (Need.WRITE_TOPIC.of(refused[0]),)),
            )
        if code != NONE:
            raise self._coordinator.error_for(code, request)


def new_producer_id(settings: ConnectionSettings) -> ProducerId:
    """A new id with epoch 0, for idempotent writing without transactions. Blocks.

    Waits for a broker that has just started and has no ids for a moment. Raises AuthorizationError (brokers
    before 2.8), or RetriableError after the request's time-out.
    """
    retries = Retries(settings)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
    with closing(Cluster(settings)) as cluster:
        while True:
            response = cluster.request("InitProducerId", request, InitProducerIdResponse, version_max=4)
            if response.error_code == NONE:
                return ProducerId(response.producer_id, response.producer_epoch)
            right = Need.NUMBER_RECORDS.of()
            retries.wait(cluster.error(response.error_code, "InitProducerId", right))


def fence(settings: ConnectionSettings, transactional_ids: Collection[str]) -> None:
    """Fence the producers of these ids and abort their transactions, as Connect does before tasks start.

    Waits until they are aborted (KIP-618). The time-out in the request limits the coordinator's own write
    too, hence the request's and not 1 ms (KAFKA-16047). Raises the first failure, as `Transactions.init`
    does.
    """
    for transactional_id in transactional_ids:
        coordinator = TransactionCoordinator(settings, transactional_id)
        try:
            _init(coordinator, settings.request_timeout_s, NOT_IDEMPOTENT)
        finally:
            coordinator.close()


def _init(coordinator: TransactionCoordinator, timeout_s: float, known: ProducerId) -> ProducerId:
    """`known` is the caller's current producer id and epoch, or NOT_IDEMPOTENT to take the id over."""
    request = InitProducerIdRequest(
        transactional_id=coordinator.transactional_id,
        transaction_timeout_ms=int(timeout_s * 1000),
        producer_id=known.id,
        producer_epoch=known.epoch,
    )
    response = coordinator.ask(request, InitProducerIdResponse, _error_code, version_max=_INIT_VERSION_MAX)
    if response.error_code != NONE:
        raise coordinator.error_for(response.error_code, request)
    return ProducerId(response.producer_id, response.producer_epoch)


def _error_code(response: Any) -> int:
    code: int = response.error_code
    return code


def _by_topic(partitions: Collection[TopicPartition]) -> list[Any]:
    topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    by_topic = numbers_by_topic(sorted(partitions))
    return [topic_class(name=name, partitions=numbers) for name, numbers in by_topic.items()]


def _results(response: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, result.partition_index): result.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    }


def _worst(response: Any) -> int:
    """All partitions are added or none; those without an error of their own have OPERATION_NOT_ATTEMPTED."""
    codes = set(_results(response).values()) - {NONE}
    return next(iter(codes - {_OPERATION_NOT_ATTEMPTED} or codes), NONE)
