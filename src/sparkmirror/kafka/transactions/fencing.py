"""Claims epochs of many transactional ids, and makes leaders refuse those before: a fence without data.

A transaction that ends without data writes a control marker into its partition, which no consumer returns.
The marker carries the claimed epoch, and from then on the partition's leader, and every later one, refuses
batches of a lower epoch of that producer id. Batches outside transactions may follow under the claimed epoch,
with sequences from 0.

The transaction ends by a version of EndTxn below 5, which leaves the epoch as it is (KIP-890).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import ceil
from typing import Any, Final, NamedTuple, TypeVar

from kafka.protocol.admin import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

from sparkmirror.batches.producer import ProducerId
from sparkmirror.domain.acls import PatternType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, KafkaError, RetriableError, SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import Cluster, CoordinatorKind
from sparkmirror.kafka.retries import Retries
from sparkmirror.kafka.transactions.transaction_coordinator import COMPLETING, LATER, MOVED, coordinator_error
from sparkmirror.kafka.wire.error_codes import (
    CONCURRENT_TRANSACTIONS,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    Needed,
    error_for,
)

FENCING_IDS: Final = "sparkmirror-"
"""The prefix of the transactional ids that fence attempts; one right covers all of them."""

_INIT_VERSION_MAX: Final = 5
_ADD_VERSION_MAX: Final = 3
_END_VERSION_MAX: Final = 4
_CONNECTIONS: Final = 4
"""Connections per coordinator: a broker handles one request at a time on each, and each is a write."""
_PIPELINED_MIN: Final = 50
"""Fewer are not worth another connection."""
_PIPELINED_MAX: Final = 100
_MARKED_MAX: Final = 1000
"""The number of fences open at a time: none may be open for long."""

_TRANSACTION_TIMEOUT_S: Final = 60.0
"""The transaction time-out, Kafka's default: the coordinator ends a fence that its writer left open."""

_T = TypeVar("_T")


class Claim(NamedTuple):
    """The producer id and epoch that a transactional id has now, and the partition to write with them."""

    producer: ProducerId
    partition: TopicPartition


class _Share(NamedTuple):
    """Ids of one coordinator, and the cluster whose connection to it they are asked over."""

    cluster: Cluster
    coordinator: Address
    ids: Sequence[str]


class Fencing:
    """Claims epochs and writes fences, blocking. Not thread-safe; the owner closes it."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._clusters = [Cluster(settings) for _ in range(_CONNECTIONS)]
        self._coordinators: dict[str, Address] = {}

    def claim(self, transactional_ids: Collection[str]) -> Mapping[str, ProducerId | SparkmirrorError]:
        """Claim, for each id, an epoch above all before it, or epoch 0 of a new producer id.

        What cannot be claimed for the request's time-out has an error. Waits for transactions that others
        left open to be aborted. Raises DisconnectedError when no broker responds.
        """
        timeout_ms = int(_TRANSACTION_TIMEOUT_S * 1000)
        requests = {
            each: InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=timeout_ms)
            for each in transactional_ids
        }
        return self._ask(
            requests,
            InitProducerIdResponse,
            lambda response: response.error_code,
            lambda response: ProducerId(response.producer_id, response.producer_epoch),
            version_max=_INIT_VERSION_MAX,
        )

    def mark(self, claims: Mapping[str, Claim]) -> Mapping[str, SparkmirrorError | None]:
        """Write a marker of each claim's epoch into its partition; the leader has it soon after this returns.

        After an error it is unknown whether there will be one, and the id must be claimed again. Raises
        DisconnectedError when no broker responds.
        """
        marked: dict[str, SparkmirrorError | None] = {}
        ids = iter(claims)
        while some := list(islice(ids, _MARKED_MAX)):
            marked.update(self._mark({each: claims[each] for each in some}))
        return marked

    def _mark(self, claims: Mapping[str, Claim]) -> Mapping[str, SparkmirrorError | None]:
        added = self._ask(
            {each: _addition(each, claim) for each, claim in claims.items()},
            AddPartitionsToTxnResponse,
            _partition_code,
            lambda _: None,
            version_max=_ADD_VERSION_MAX,
            resends=False,
        )
        ended = self._ask(
            {each: _end(each, claims[each]) for each, error in added.items() if error is None},
            EndTxnResponse,
            lambda response: response.error_code,
            lambda _: None,
            version_max=_END_VERSION_MAX,
        )
        errors = {**added, **ended}
        return {each: self._named(claims[each], errors[each]) for each in claims}

    def owners(self, transactional_ids: Collection[str]) -> Mapping[str, ProducerId | SparkmirrorError]:
        """Return the producer id and epoch that claimed each id last (KIP-664). Changes nothing.

        UnsupportedVersionError before Kafka 3.0. Raises DisconnectedError when no broker responds.
        """
        requests = {each: DescribeTransactionsRequest(transactional_ids=[each]) for each in transactional_ids}
        return self._ask(
            requests,
            DescribeTransactionsResponse,
            lambda response: response.transaction_states[0].error_code,
            lambda response: ProducerId(
                response.transaction_states[0].producer_id, response.transaction_states[0].producer_epoch
            ),
            version_max=0,
        )

    def close(self) -> None:
        for cluster in self._clusters:
            cluster.close()

    def _named(self, claim: Claim, error: SparkmirrorError | None) -> SparkmirrorError | None:
        """The same error; with the right that is missing, if it is about the topic."""
        if not isinstance(error, KafkaError) or error.code != TOPIC_AUTHORIZATION_FAILED:
            return error
        needed = Needed(self._settings, (Need.WRITE_TOPIC.of(claim.partition.topic),))
        return error_for(error.code, "AddPartitionsToTxn", claim.partition.topic, needed)

    def _ask(
        self,
        requests: Mapping[str, Any],
        response_class: Any,
        code_of: Callable[[Any], int],
        result_of: Callable[[Any], _T],
        *,
        version_max: int,
        resends: bool = True,
    ) -> Mapping[str, _T | SparkmirrorError]:
        """Ask each id's coordinator. Unless `resends`, a lost connection is an error at once."""
        found: dict[str, _T | SparkmirrorError] = {}
        retries = Retries(self._settings)
        while left := {each: request for each, request in requests.items() if each not in found}:
            errors: dict[str, SparkmirrorError] = dict(self._find(left))
            for each, response in self._exchange(left, response_class, version_max, retries):
                if isinstance(response, SparkmirrorError):
                    if resends:
                        errors[each] = response
                    else:
                        found[each] = response
                elif (code := code_of(response)) == NONE:
                    found[each] = result_of(response)
                else:
                    errors[each] = self._refusal(each, code, left[each])
            lasting = {each: error for each, error in errors.items() if not _passes(error)}
            found.update(lasting)
            passing = [error for each, error in errors.items() if each not in lasting]
            if passing and not self._waits(retries, passing[0]):
                found.update(errors)
        return found

    def _waits(self, retries: Retries, error: SparkmirrorError) -> bool:
        completing = isinstance(error, KafkaError) and error.code == CONCURRENT_TRANSACTIONS
        try:
            retries.wait(error, COMPLETING if completing else None)
        except SparkmirrorError:
            return False
        return True

    def _refusal(self, transactional_id: str, code: int, request: Any) -> SparkmirrorError:
        if code in MOVED:
            self._coordinators.pop(transactional_id, None)
        right = Need.TRANSACT.of(FENCING_IDS, PatternType.PREFIXED)
        error = coordinator_error(Needed(self._settings, (right,)), transactional_id, code, request)
        return RetriableError(str(error), code) if code in LATER else error

    def _find(self, transactional_ids: Collection[str]) -> Mapping[str, SparkmirrorError]:
        """Look up the coordinators that are not known; the errors of those that could not be found."""
        unknown = [each for each in transactional_ids if each not in self._coordinators]
        errors: dict[str, SparkmirrorError] = {}
        if not unknown:
            return errors
        for each, coordinator in self._clusters[0].coordinators(CoordinatorKind.TRANSACTION, unknown):
            if coordinator.code == NONE:
                self._coordinators[each] = coordinator.address
            else:
                errors[each] = self._refusal(each, coordinator.code, FindCoordinatorRequest)
        return errors

    def _exchange(
        self, requests: Mapping[str, Any], response_class: Any, version_max: int, retries: Retries
    ) -> Iterator[tuple[str, Any]]:
        """Return each id with its response, or with the error of its coordinator."""

        def send(share: _Share) -> Callable[[], list[Any]]:
            return share.cluster.connection(share.coordinator).send_all(
                [requests[each] for each in share.ids],
                response_class,
                timeout_s=retries.left_s,
                version_max=version_max,
            )

        for at_once in self._shares(requests):
            sent = [(share, self._attempted(share, partial(send, share))) for share in at_once]
            for share, receive in sent:
                responses = receive if isinstance(receive, KafkaError) else self._attempted(share, receive)
                if isinstance(responses, KafkaError):
                    yield from ((each, responses) for each in share.ids)
                else:
                    yield from zip(share.ids, responses, strict=True)

    def _attempted(self, share: _Share, step: Callable[[], _T]) -> _T | KafkaError:
        try:
            return step()
        except DisconnectedError as error:
            share.cluster.forget()
            for each in share.ids:
                self._coordinators.pop(each, None)
            return error
        except KafkaError as error:
            return error

    def _shares(self, transactional_ids: Collection[str]) -> Iterable[Sequence[_Share]]:
        """Yield the batches of fences that are open at the same time."""
        rounds: dict[int, list[_Share]] = {}
        for coordinator, led in self._by_coordinator(transactional_ids).items():
            size = min(max(ceil(len(led) / _CONNECTIONS), _PIPELINED_MIN), _PIPELINED_MAX)
            for number, begin in enumerate(range(0, len(led), size)):
                nth_round, connection = divmod(number, _CONNECTIONS)
                share = _Share(self._clusters[connection], coordinator, led[begin : begin + size])
                rounds.setdefault(nth_round, []).append(share)
        return rounds.values()

    def _by_coordinator(self, transactional_ids: Collection[str]) -> Mapping[Address, list[str]]:
        led: dict[Address, list[str]] = {}
        for each in transactional_ids:
            if each in self._coordinators:
                led.setdefault(self._coordinators[each], []).append(each)
        return led


def _passes(error: SparkmirrorError) -> bool:
    return error.retriable or (isinstance(error, KafkaError) and error.code == CONCURRENT_TRANSACTIONS)


def _addition(transactional_id: str, claim: Claim) -> Any:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
        name=claim.partition.topic, partitions=[claim.partition.partition]
    )
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=claim.producer.id,
        v3_and_below_producer_epoch=claim.producer.epoch,
        v3_and_below_topics=[topic],
    )


def _end(transactional_id: str, claim: Claim) -> Any:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=claim.producer.id,
        producer_epoch=claim.producer.epoch,
        committed=False,
    )


def _partition_code(response: Any) -> int:
    (topic,) = response.results_by_topic_v3_and_below
    code: int = topic.results_by_partition[0].partition_error_code
    return code
