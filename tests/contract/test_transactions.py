"""Transactions under both versions of the protocol (KIP-98, KIP-890).

New clusters have version 2; the frail cluster is set to `transaction.version` 1.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import NewTopic
from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
)

from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import TRANSACTIONAL
from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.client_settings import ConnectionSettings, ProducerSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    FencedError,
    KafkaError,
    RetriableError,
    SparkmirrorError,
    UnclearTransactionError,
)
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.kafka.admin.cluster_survey import survey
from sparkmirror.kafka.net.metadata import request_metadata
from sparkmirror.kafka.transactions.fencing import FENCING_IDS, Fencing
from sparkmirror.kafka.transactions.transaction_runs import Transactions, fence
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import (
    INVALID_PRODUCER_EPOCH,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.contract.event_loop import batch_of
from tests.contract.transaction_version import finalize
from tests.memory.server import serving
from tests.support.acls import in_force
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import Keyed, admin, create_topic, numbered
from tests.support.broker_requests import Asker, asking
from tests.support.connections import connection
from tests.support.isolation import seen_by
from tests.support.proxy import Api, Disruption, Moment, proxied
from tests.support.recorded_setup import Acl
from tests.support.replica_moves import reassign
from tests.support.topic_reader import TopicReader, await_leaders
from tests.support.waiting import await_value

TOPIC: Final = "contract.transactions"
PARTITIONS: Final = 40
WAIT_S: Final = 20.0
TIMEOUT_S: Final = 60.0

INVALID_TXN_STATE: Final = 48
CONCURRENT_TRANSACTIONS: Final = 51
PRODUCER_FENCED: Final = 90
TRANSACTION_ABORTABLE: Final = 120


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster, its finalized transaction version, and partitions that no other test uses."""

    cluster: AnyCluster
    version: int
    asker: Asker
    numbers: Iterator[int]

    def partition(self) -> TopicPartition:
        return TopicPartition(TOPIC, next(self.numbers))

    def transactions(self, transactional_id: str, timeout_s: float = TIMEOUT_S) -> Transactions:
        return Transactions(connection(self.cluster), f"{transactional_id}-{self.version}", timeout_s)

    def produce(
        self,
        transactions: Transactions,
        producer: ProducerId,
        partition: TopicPartition,
        records: list[Keyed],
        sequence: int,
        *,
        version: int | None = None,
    ) -> int:
        """Produce; until the former transaction is complete, version 2 answers CONCURRENT_TRANSACTIONS."""
        batch = batch_of(
            records,
            attributes=TRANSACTIONAL,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
        version = transactions.produce_version_max if version is None else version
        answers: list[int] = []

        def is_settled() -> bool:
            number = self.asker.connection.next_correlation_id()
            frame = produce.encode_produce_request(
                {partition: memoryview(batch)},
                ProducerSettings(self.asker.settings),
                version,
                number,
                transactional_id=transactions.transactional_id,
            )
            answer = self.asker.connection.ask(frame, "Produce", WAIT_S)
            answers.append(produce.decode_produce_response(answer, version, number).partitions[0].error)
            return answers[-1] != CONCURRENT_TRANSACTIONS

        await_value(is_settled, WAIT_S, lambda: f"{answers}")
        return answers[-1]

    def await_refused(
        self, transactions: Transactions, producer: ProducerId, partition: TopicPartition
    ) -> int:
        """Produce further batches of two records until one is refused; returns its error."""
        answers = [NONE]

        def is_refused() -> bool:
            sequence = 2 * len(answers)
            answers.append(self.produce(transactions, producer, partition, numbered(2), sequence))
            return answers[-1] != NONE

        await_value(is_refused, WAIT_S, lambda: f"{answers}")
        return answers[-1]

    def add(self, transactions: Transactions, producer: ProducerId, partition: TopicPartition) -> int:
        """Send AddPartitionsToTxn, once the former transaction is complete; returns its error."""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=partition.topic, partitions=[partition.partition]
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactions.transactional_id,
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[topic],
        )
        answers: list[int] = []

        def is_settled() -> bool:
            answer = self.asker.ask(request, AddPartitionsToTxnResponse, version_max=3)
            (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
            answers.append(result.partition_error_code)
            return answers[-1] != CONCURRENT_TRANSACTIONS

        await_value(is_settled, WAIT_S, lambda: f"{answers}")
        return answers[-1]

    def end(
        self, transactions: Transactions, producer: ProducerId, *, commit: bool, version: int
    ) -> "EndAnswer":
        """Send EndTxn. The only broker is the coordinator."""
        request = EndTxnRequest(
            transactional_id=transactions.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=commit,
        )
        answer = self.asker.ask(request, EndTxnResponse, version_max=version)
        return EndAnswer(answer.error_code, ProducerId(answer.producer_id, answer.producer_epoch))

    def seen(self, partition: TopicPartition, isolation: str) -> list[Keyed]:
        """Read the partition with another client, up to the end that it sees."""
        return seen_by(self.cluster, partition, isolation)

    def await_committed(self, partition: TopicPartition, expected: list[Keyed]) -> None:
        """Wait for exactly these records: EndTxn is answered before its markers are written."""
        seen: list[Keyed] = []

        def holds() -> bool:
            seen[:] = self.seen(partition, "read_committed")
            return len(seen) >= len(expected)

        await_value(holds, WAIT_S, lambda: f"{seen}")
        assert seen == expected


class EndAnswer(NamedTuple):
    error: int
    producer: ProducerId


NOBODY: Final = ProducerId(-1, -1)


@pytest.fixture(scope="module")
def new_side(source_cluster: LocalCluster) -> Iterator[Side]:
    create_topic(source_cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    with asking(source_cluster) as asker:
        yield Side(source_cluster, 2, asker, iter(range(PARTITIONS)))


@pytest.fixture(scope="module")
def old_side(frail_cluster: LocalCluster) -> Iterator[Side]:
    create_topic(frail_cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    with asking(frail_cluster) as asker:
        finalize(asker, 1)
        try:
            yield Side(frail_cluster, 1, asker, iter(range(PARTITIONS)))
        finally:
            finalize(asker, 2)


def in_memory(version: int) -> Iterator[Side]:
    with serving(f"transactions {version}") as server:
        server.cluster.transaction_version = version
        create_topic(server.bootstrap_servers, TOPIC, partitions=PARTITIONS)
        with asking(server) as asker:
            yield Side(server, version, asker, iter(range(PARTITIONS)))


@pytest.fixture(scope="module")
def old_memory_side() -> Iterator[Side]:
    yield from in_memory(1)


@pytest.fixture(scope="module")
def new_memory_side() -> Iterator[Side]:
    yield from in_memory(2)


IN_MEMORY: Final = [
    pytest.param(name, marks=pytest.mark.memory) for name in ("old_memory_side", "new_memory_side")
]


@pytest.fixture(params=[*IN_MEMORY, "old_side", "new_side"])
def side(request: pytest.FixtureRequest) -> Side:
    made = request.getfixturevalue(request.param)
    assert isinstance(made, Side)
    return made


@pytest.fixture
def begin(side: Side) -> Iterator[Callable[..., Transactions]]:
    """Make Transactions with this transactional id, closed after the test."""
    made: list[Transactions] = []

    def begun(transactional_id: str, timeout_s: float = TIMEOUT_S) -> Transactions:
        made.append(side.transactions(transactional_id, timeout_s))
        return made[-1]

    yield begun
    for transactions in made:
        transactions.close()


Begin = Callable[..., Transactions]


def test_committed_records_are_visible_and_aborted_ones_are_not(side: Side, begin: Begin) -> None:
    transactions = begin("contract.ends")
    first, second = side.partition(), side.partition()
    producer, sequence = transactions.init(), 0
    assert transactions.is_version_2 == (side.version == 2)
    for number, commit in enumerate([True, False, True]):
        transactions.add([first, second])
        for partition in (first, second):
            assert side.produce(transactions, producer, partition, numbered(2, number * 2), sequence) == NONE
        before, producer = producer, transactions.end(commit=commit)
        if side.version == 2:
            assert producer == before.next_epoch()
            sequence = 0
        else:
            assert producer == before
            sequence += 2
    for partition in (first, second):
        side.await_committed(partition, [*numbered(2), *numbered(2, 4)])
        assert side.seen(partition, "read_uncommitted") == numbered(6)


def test_records_count_behind_a_marker_that_takes_the_next_offset(side: Side, begin: Begin) -> None:
    """So a log without gaps can't be copied in transactions to the same offsets (docs/decisions/0006)."""
    transactions, partition = begin("contract.offsets"), side.partition()
    producer = transactions.init()
    for number in range(2):
        transactions.add([partition])
        sequence = 0 if side.version == 2 else 3 * number
        assert side.produce(transactions, producer, partition, numbered(3, 3 * number), sequence) == NONE
        assert side.seen(partition, "read_committed") == numbered(3 * number)
        producer = transactions.end(commit=True)
        side.await_committed(partition, numbered(3 + 3 * number))
    with TopicReader(side.cluster.bootstrap_servers, TOPIC, read_committed=True) as reader:
        offsets = [record.offset() for record in reader.read(partition.partition)]
    assert offsets == [0, 1, 2, 4, 5, 6]


def test_sequences_restart_under_version_2_only(side: Side, begin: Begin) -> None:
    transactions, partition = begin("contract.sequences"), side.partition()
    producer = transactions.init()
    transactions.add([partition])
    assert side.produce(transactions, producer, partition, numbered(2), 0) == NONE
    producer = transactions.end(commit=True)
    transactions.add([partition])
    wrong, right = (2, 0) if side.version == 2 else (3, 2)
    assert side.produce(transactions, producer, partition, numbered(2), wrong) == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert side.produce(transactions, producer, partition, numbered(2), right) == NONE
    transactions.end(commit=True)


def test_a_survey_of_rights_leaves_an_open_transaction_alone(side: Side, begin: Begin) -> None:
    transactions, partition = begin("contract.surveyed"), side.partition()
    producer, target = transactions.init(), connection(side.cluster)
    transactions.add([partition])
    assert side.produce(transactions, producer, partition, numbered(2), 0) == NONE
    surveyed = survey(target, Alias("target"), (), [transactions.transactional_id, "contract.unknown"])
    assert surveyed.refused_ids == frozenset()
    assert side.produce(transactions, producer, partition, numbered(2, 2), 2) == NONE
    transactions.end(commit=True)
    side.await_committed(partition, numbered(4))


def test_empty_transaction_ends_without_a_new_epoch(side: Side, begin: Begin) -> None:
    transactions = begin("contract.empty")
    producer = transactions.init()
    transactions.add([])
    assert [transactions.end(commit=commit) for commit in (True, False)] == [producer, producer]


def test_new_owner_of_a_transactional_id_fences_the_former_one(side: Side, begin: Begin) -> None:
    old, new, partition = begin("contract.fenced"), begin("contract.fenced"), side.partition()
    fenced = old.init()
    old.add([partition])
    assert side.produce(old, fenced, partition, numbered(2), 0) == NONE
    producer = new.init()
    assert (producer.id, producer.epoch > fenced.epoch) == (fenced.id, True)
    assert side.produce(old, fenced, partition, numbered(2, 2), 2) == INVALID_PRODUCER_EPOCH
    with pytest.raises(FencedError, match=r"fenced-\d: EndTxn: PRODUCER_FENCED: another producer") as error:
        old.end(commit=True)
    assert (error.value.code, error.value.retriable) == (PRODUCER_FENCED, False)

    new.add([partition])
    assert side.produce(new, producer, partition, numbered(2, 4), 0) == NONE
    with pytest.raises(FencedError):  # and does not abort its successor's transaction
        old.init()
    with pytest.raises(UnclearTransactionError, match="not initialised"):
        old.add([partition])
    new.end(commit=True)
    side.await_committed(partition, numbered(2, 4))
    assert side.seen(partition, "read_uncommitted") == [*numbered(2), *numbered(2, 4)]


def test_owner_can_take_over_its_transactional_id_again(side: Side, begin: Begin) -> None:
    ours, other = begin("contract.taken-back"), begin("contract.taken-back")
    ours.init()
    taken = other.init()
    producer = ours.init(take_over=True)
    assert producer == taken.next_epoch()
    with pytest.raises(FencedError):
        other.init()
    assert ours.init().epoch > producer.epoch


def test_fencing_aborts_the_open_transaction(side: Side, begin: Begin) -> None:
    transactions, partition = begin("contract.fence"), side.partition()
    producer = transactions.init()
    transactions.add([partition])
    assert side.produce(transactions, producer, partition, numbered(2), 0) == NONE
    fence(connection(side.cluster), [transactions.transactional_id, f"contract.fence-new-{side.version}"])
    assert side.produce(transactions, producer, partition, numbered(2), 2) == INVALID_PRODUCER_EPOCH
    with pytest.raises(FencedError):
        transactions.end(commit=True)
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        fence(connection(side.cluster), [""])


def test_repeated_init_producer_id_aborts_the_open_transaction(side: Side, begin: Begin) -> None:
    transactions, partition = begin("contract.again"), side.partition()
    first = transactions.init()
    transactions.add([partition])
    assert side.produce(transactions, first, partition, numbered(2), 0) == NONE
    second = transactions.init()
    assert (second.id, second.epoch > first.epoch) == (first.id, True)
    transactions.add([partition])
    assert side.produce(transactions, second, partition, numbered(2, 2), 0) == NONE
    transactions.end(commit=True)
    side.await_committed(partition, numbered(2, 2))


def test_a_partition_must_be_added_under_version_1_and_adds_itself_under_version_2(
    side: Side, begin: Begin
) -> None:
    transactions, partition = begin("contract.not-added"), side.partition()
    producer = transactions.init()
    expected = NONE if side.version == 2 else TRANSACTION_ABORTABLE
    assert side.produce(transactions, producer, partition, numbered(2), 0) == expected


def test_refused_partition_adds_no_other_partition(old_side: Side) -> None:
    transactions, partition = old_side.transactions("contract.add-none"), old_side.partition()
    producer = transactions.init()
    with pytest.raises(RetriableError, match="AddPartitionsToTxn: UNKNOWN_TOPIC_OR_PARTITION") as error:
        transactions.add([partition, TopicPartition("contract.no-such-topic", 0)])
    assert error.value.code == UNKNOWN_TOPIC_OR_PARTITION
    assert old_side.produce(transactions, producer, partition, numbered(2), 0) == TRANSACTION_ABORTABLE
    assert transactions.end(commit=True) == producer
    transactions.add([partition])
    assert old_side.produce(transactions, producer, partition, numbered(2), 0) == NONE
    transactions.end(commit=True)
    transactions.close()
    old_side.await_committed(partition, numbered(2))


@dataclass(frozen=True, slots=True)
class BareClient:
    """A client that sends only requests of one version, on a cluster with version 2."""

    side: Side
    version: int
    transactions: Transactions
    producer: ProducerId

    def produce(self, partition: TopicPartition, records: list[Keyed], sequence: int) -> int:
        if self.version == 1:
            assert self.side.add(self.transactions, self.producer, partition) == NONE
        version = {1: 11, 2: 12}[self.version]
        return self.side.produce(
            self.transactions, self.producer, partition, records, sequence, version=version
        )

    def end(self, *, commit: bool) -> EndAnswer:
        version = {1: 4, 2: 5}[self.version]
        return self.side.end(self.transactions, self.producer, commit=commit, version=version)

    def end_when_complete(self, *, commit: bool) -> EndAnswer:
        answers = [self.end(commit=commit)]

        def is_complete() -> bool:
            if answers[-1] == EndAnswer(CONCURRENT_TRANSACTIONS, NOBODY):
                answers.append(self.end(commit=commit))
            return answers[-1].error != CONCURRENT_TRANSACTIONS

        await_value(is_complete, WAIT_S, lambda: f"{answers}")
        return answers[-1]


@pytest.fixture(params=[1, 2], ids=["version-1", "version-2"])
def bare(new_side: Side, request: pytest.FixtureRequest) -> BareClient:
    transactions = new_side.transactions(f"contract.{request.node.name}")
    producer = transactions.init()
    transactions.close()
    return BareClient(new_side, request.param, transactions, producer)


@pytest.mark.parametrize("commit", [True, False])
def test_repeated_end_txn_succeeds_and_the_opposite_one_is_refused(bare: BareClient, *, commit: bool) -> None:
    """Both versions on one cluster: version 1 requests work where version 2 is finalized."""
    partition = bare.side.partition()
    assert bare.produce(partition, numbered(1), 0) == NONE
    ended = EndAnswer(NONE, bare.producer.next_epoch() if bare.version == 2 else NOBODY)
    assert bare.end(commit=commit) == ended
    assert bare.end_when_complete(commit=commit) == ended
    assert bare.end(commit=not commit) == EndAnswer(INVALID_TXN_STATE, NOBODY)
    assert bare.side.seen(partition, "read_committed") == (numbered(1) if commit else [])


def test_version_1_requests_keep_epoch_and_sequences_where_version_2_is_finalized(new_side: Side) -> None:
    transactions, partition = new_side.transactions("contract.capped"), new_side.partition()
    bare = BareClient(new_side, 1, transactions, transactions.init())
    transactions.close()
    for at in range(3):
        assert bare.produce(partition, numbered(2, at * 2), at * 2) == NONE
        assert bare.end(commit=at != 1).error == NONE
    new_side.await_committed(partition, [*numbered(2), *numbered(2, 4)])


def test_transaction_past_its_timeout_is_aborted(new_side: Side, old_side: Side) -> None:
    """Brokers check every 10 s. Version 1 can't distinguish a timeout from fencing; version 2 continues."""
    timed_out = []
    for side in (new_side, old_side):
        transactions, partition = side.transactions("contract.timed-out", 0.05), side.partition()
        producer = transactions.init()
        transactions.add([partition])
        assert side.produce(transactions, producer, partition, numbered(2), 0) == NONE
        timed_out.append((side, transactions, partition, producer))
    for side, transactions, partition, producer in timed_out:
        assert side.await_refused(transactions, producer, partition) == INVALID_PRODUCER_EPOCH
        with pytest.raises(UnclearTransactionError if side.version == 2 else FencedError) as error:
            transactions.end(commit=True)
        assert error.value.code == (INVALID_TXN_STATE if side.version == 2 else PRODUCER_FENCED)
        renewed = transactions.init(take_over=side.version == 1)
        transactions.add([partition])
        assert side.produce(transactions, renewed, partition, numbered(2, 100), 0) == NONE
        transactions.end(commit=True)
        transactions.close()
        side.await_committed(partition, numbered(2, 100))


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("moment", [Moment.REQUEST_HALF_SENT, Moment.ANSWER_DUE])
def test_outcome_is_unknown_after_a_lost_end_txn_response_until_init_producer_id(
    side: Side, moment: Moment, *, commit: bool
) -> None:
    partition = side.partition()
    with proxied((HOST, side.cluster.brokers[0].port)) as (proxy,):
        settings = ConnectionSettings((proxy.address,), request_timeout_s=WAIT_S)
        name = f"contract.lost-{side.version}-{moment.name}-{commit}"
        transactions = Transactions(settings, name, TIMEOUT_S)
        producer = transactions.init()
        transactions.add([partition])
        assert side.produce(transactions, producer, partition, numbered(2), 0) == NONE
        proxy.disrupt_next(Api.END_TXN, moment, Disruption.RESET)
        with pytest.raises(UnclearTransactionError, match="initialise it again and read the positions again"):
            transactions.end(commit=commit)
        for attempt in (lambda: transactions.add([partition]), lambda: transactions.end(commit=commit)):
            with pytest.raises(UnclearTransactionError, match="not initialised"):
                attempt()
        producer = transactions.init()
        was_committed = commit and moment is Moment.ANSWER_DUE
        assert side.seen(partition, "read_committed") == (numbered(2) if was_committed else [])
        transactions.add([partition])
        assert side.produce(transactions, producer, partition, numbered(2, 2), 0) == NONE
        transactions.end(commit=True)
        transactions.close()
    side.await_committed(partition, numbered(4) if was_committed else numbered(2, 2))


@pytest.mark.parametrize("moment", [Moment.REQUEST_HALF_SENT, Moment.ANSWER_DUE])
def test_init_producer_id_is_retried_after_lost_responses(side: Side, moment: Moment) -> None:
    partition = side.partition()
    with proxied((HOST, side.cluster.brokers[0].port)) as (proxy,):
        settings = ConnectionSettings((proxy.address,), request_timeout_s=WAIT_S)
        transactions = Transactions(settings, f"contract.init-{side.version}-{moment.name}", TIMEOUT_S)
        for _ in range(2):
            proxy.disrupt_next(Api.INIT_PRODUCER_ID, moment, Disruption.RESET)
            proxy.disrupt_next(Api.END_TXN, moment, Disruption.RESET)
            producer = transactions.init()
            transactions.add([partition])
            assert side.produce(transactions, producer, partition, numbered(2), 0) == NONE
        proxy.restore()
        transactions.init()
        transactions.close()
    assert side.seen(partition, "read_committed") == []


def test_failed_init_producer_id_fences_neither_itself_nor_its_successor(old_side: Side) -> None:
    with proxied((HOST, old_side.cluster.brokers[0].port)) as (proxy,):
        settings = ConnectionSettings((proxy.address,), request_timeout_s=1.5)
        transactions = Transactions(settings, "contract.init-failed", TIMEOUT_S)

        def fail() -> None:
            proxy.disrupt_next(Api.INIT_PRODUCER_ID, Moment.ANSWER_DUE, Disruption.SWALLOW)
            with pytest.raises(RetriableError, match="did not answer"):
                transactions.init()

        first = transactions.init()
        fail()
        assert transactions.init().epoch > first.epoch
        fail()
        successor = Transactions(connection(old_side.cluster), "contract.init-failed", TIMEOUT_S)
        successor.init()
        with pytest.raises(FencedError, match="InitProducerId: PRODUCER_FENCED"):
            transactions.init()
        successor.init()
        successor.close()
        transactions.close()


def test_result_is_unknown_after_a_lost_add_partitions_response(old_side: Side) -> None:
    partition = old_side.partition()
    with proxied((HOST, old_side.cluster.brokers[0].port)) as (proxy,):
        transactions = Transactions(ConnectionSettings((proxy.address,)), "contract.lost-add", TIMEOUT_S)
        transactions.init()
        proxy.disrupt_next(Api.ADD_PARTITIONS_TO_TXN, Moment.ANSWER_DUE, Disruption.RESET)
        with pytest.raises(UnclearTransactionError, match=r"lost-add: .*127\.0\.0\.1:"):
            transactions.add([partition])
        with pytest.raises(UnclearTransactionError, match="not initialised"):
            transactions.end(commit=False)
        transactions.init()
        transactions.close()


def test_timeout_above_the_brokers_limit_is_an_error_that_names_it(side: Side, begin: Begin) -> None:
    with pytest.raises(KafkaError, match=r"InitProducerId: INVALID_TRANSACTION_TIMEOUT .*max\.timeout\.ms"):
        begin("contract.too-long", 901.0).init()


def test_version_2_is_used_from_the_transaction_after_it_was_finalized(old_side: Side) -> None:
    settings = replace(connection(old_side.cluster), metadata_max_age_s=0.0)
    transactions, partition = Transactions(settings, "contract.upgraded", TIMEOUT_S), old_side.partition()
    producer = transactions.init()
    assert (transactions.is_version_2, transactions.produce_version_max) == (False, 11)
    transactions.add([partition])
    assert old_side.produce(transactions, producer, partition, numbered(2), 0) == NONE
    try:
        finalize(old_side.asker, 2)
        assert (transactions.is_version_2, transactions.produce_version_max) == (False, 11)
        old, producer = producer, transactions.end(commit=True)
        assert (transactions.is_version_2, transactions.produce_version_max) == (True, 12)
        assert producer == old.next_epoch()
        transactions.add([partition])
        assert old_side.produce(transactions, producer, partition, numbered(2, 2), 0) == NONE
    finally:
        finalize(old_side.asker, 1)
    transactions.end(commit=True)
    assert not transactions.is_version_2
    transactions.close()
    old_side.await_committed(partition, numbered(4))


def right(kind: str, name: str, who: str, operation: str) -> Acl:
    return kind, "LITERAL", name, who, "*", operation, "ALLOW"


def refusal(call: Callable[[], object]) -> str:
    """The error's message."""
    with pytest.raises(AuthorizationError) as error:
        call()
    return str(error.value)


def test_a_right_to_fence_is_asked_for_all_ids_at_once(old_side: Side) -> None:
    """Each partition has an id of its own."""
    name, servers = f"{FENCING_IDS}contract-0", old_side.cluster.bootstrap_servers
    with closing(Fencing(connection(old_side.cluster))) as fencing:

        def claim() -> None:
            found = fencing.claim([name])[name]
            if isinstance(found, SparkmirrorError):
                raise found

        with in_force(old_side.cluster, right("TRANSACTIONAL_ID", name, "User:*", "DESCRIBE")):
            assert refusal(claim).endswith(
                f"needs WRITE on transactional ids that begin with {FENCING_IDS}: kafka-acls.sh "
                f"--bootstrap-server {servers} --add --allow-principal User:ANONYMOUS --operation Write "
                f"--transactional-id {FENCING_IDS} --resource-pattern-type prefixed"
            )


def test_missing_acl_is_named(old_side: Side) -> None:
    name, topic = "contract.secret", "contract.secret-topic"
    create_topic(old_side.cluster.bootstrap_servers, topic)
    servers = old_side.cluster.bootstrap_servers
    add_acl = f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal User:ANONYMOUS --operation"
    transactions = Transactions(connection(old_side.cluster), name, TIMEOUT_S)
    partitions = [old_side.partition(), TopicPartition(topic, 0)]
    transactions.init()

    with in_force(old_side.cluster, right("TOPIC", topic, "User:boss", "WRITE")):
        assert refusal(lambda: transactions.add(partitions)) == (
            "transactional id contract.secret: AddPartitionsToTxn: TOPIC_AUTHORIZATION_FAILED; "
            f"needs WRITE on topic contract.secret-topic: {add_acl} Write --topic contract.secret-topic"
        )
    named = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED; needs WRITE on transactional id contract.secret: "
    for may, request in (("User:boss", "FindCoordinator"), ("User:*", "InitProducerId")):
        with in_force(old_side.cluster, right("TRANSACTIONAL_ID", name, may, "DESCRIBE")):
            stranger = Transactions(connection(old_side.cluster), name, TIMEOUT_S)
            assert refusal(stranger.init) == (
                f"transactional id contract.secret: {request}: {named}{add_acl} Write "
                "--transactional-id contract.secret"
            )
            stranger.close()
    transactions.close()


COORDINATED: Final = TopicPartition("__transaction_state", 0)
"""The partition that stores all transactional ids of the trio."""


def move_coordinator(cluster: LocalCluster) -> None:
    """Move the transaction coordinator to another broker; returns when all brokers know that it leads."""
    (leader,) = leaders_of_coordinated(cluster)
    other = (leader + 1) % len(cluster.brokers)
    reassign(cluster, COORDINATED, [other])
    await_value(lambda: leaders_of_coordinated(cluster) == {other}, WAIT_S, lambda: f"{leader} leads still")


def leaders_of_coordinated(cluster: LocalCluster) -> set[int]:
    """The leader as each broker knows it."""
    leaders = set()
    for number in range(len(cluster.brokers)):
        with asking(cluster, number) as asker:
            metadata = request_metadata(asker.connection, [COORDINATED.topic], WAIT_S)
            leaders.add(metadata.leaders[COORDINATED].node_id)
    return leaders


def test_transactions_follow_a_moved_coordinator(trio: LocalCluster) -> None:
    client = admin(trio)  # a closed client would cancel the request
    topic = NewTopic(TOPIC, num_partitions=1, replica_assignment=[[trio.brokers[0].node_id]])
    client.create_topics([topic])[TOPIC].result(WAIT_S)
    await_leaders(trio.bootstrap_servers, {TOPIC: 1})
    with asking(trio) as asker:
        side = Side(trio, 2, asker, iter(range(1)))
        partition = side.partition()
        with closing(side.transactions("contract.moved")) as transactions:
            producer = transactions.init()
            for at in range(2):
                transactions.add([partition])
                assert side.produce(transactions, producer, partition, numbered(2, at * 2), 0) == NONE
                move_coordinator(trio)
                assert transactions.end(commit=True) == producer.next_epoch()
                move_coordinator(trio)
                producer = transactions.init()
        side.await_committed(partition, numbered(4))
