"""The sink's rows are in the topic exactly once, however drivers and tasks end; without a session."""

import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import confluent_kafka as confluent
import pyarrow as pa
import pytest

from sparkmirror.batches.key_partitions import key_partitions
from sparkmirror.clusters import LocalCluster
from sparkmirror.dataframes.decision_record import Decision
from sparkmirror.dataframes.decision_topic import Decisions
from sparkmirror.dataframes.query_writers import Sink, TaskMessage, planned
from sparkmirror.dataframes.write_options import write_options
from sparkmirror.domain.errors import AuthorizationError, ConfigError, FencedError, KafkaError
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.kafka.data.partition_offsets import await_stable
from sparkmirror.kafka.transactions.open_transactions import open_transactions
from sparkmirror.kafka.transactions.transaction_runs import fence
from tests.support.acls import in_force
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import create_topic
from tests.support.connections import connection

TASKS: Final = 3
ROWS: Final = 40


def frame(batch: int, task: int, count: int = ROWS) -> pa.RecordBatch:
    numbers = range(count)
    return pa.record_batch(
        {
            "key": pa.array([f"{batch} {task} {at}" for at in numbers], pa.string()),
            "value": pa.array([b"v%d" % at for at in numbers], pa.binary()),
            "timestamp": pa.array([1_700_000_000_000_000 + at * 1000 for at in numbers], pa.int64()).view(
                pa.timestamp("us", tz="UTC")
            ),
        }
    )


class Query:
    """Drives the sink as Spark does: a plan for each batch, tasks with what that pickled, a commit."""

    def __init__(self, cluster: AnyCluster, name: str, prefix: str | None = "", **options: str) -> None:
        self.cluster = cluster
        self.topic = f"sink.{name}"
        self.options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": self.topic, **options}
        if prefix is not None:
            self.options["transactional.id.prefix"] = prefix or name

    def plan(self) -> Sink:
        parsed = write_options(self.options)
        return Sink(parsed, planned(parsed))

    def committer(self) -> Sink:
        """Make a sink as another process does: it knows nothing of the plan."""
        sink: Any = Sink(write_options(self.options), None)  # type: ignore[arg-type]
        return sink  # type: ignore[no-any-return]

    def run(self, sink: Sink, batch: int, attempt: int = 0, tasks: int = TASKS) -> list[TaskMessage]:
        return [self.task(sink, batch, task, attempt) for task in range(tasks)]

    def task(
        self, sink: Sink, batch: int, task: int, attempt: int = 0, rows: pa.RecordBatch | None = None
    ) -> TaskMessage:
        in_task: Sink = pickle.loads(pickle.dumps(sink))
        given = [frame(batch, task)] if rows is None else [rows]
        message: TaskMessage = pickle.loads(pickle.dumps(in_task.prepare(iter(given), batch, task, attempt)))
        return message

    def whole(self, batch: int, attempt: int = 0) -> None:
        self.committer().commit(self.run(self.plan(), batch, attempt), batch)

    def decisions(self) -> Decisions:
        return Decisions(write_options(self.options))

    def keys(self, level: str = "read_committed") -> Counter[str]:
        if level == "read_committed":
            await_stable(connection(self.cluster), self.topic)
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": "test.sink",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": level,
            }
        )
        partitions = consumer.list_topics(self.topic, timeout=20).topics[self.topic].partitions
        consumer.assign([confluent.TopicPartition(self.topic, number, 0) for number in partitions])
        found: Counter[str] = Counter()
        ended: set[int | None] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(20)
            assert message is not None
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found[(message.key() or b"").decode()] += 1
        consumer.close()
        return found

    def open(self) -> list[str]:
        cluster = Cluster(connection(self.cluster))
        found = open_transactions(cluster, f"{self.options['transactional.id.prefix']}-")
        cluster.close()
        return found or []


def once(batches: Sequence[int], tasks: int = TASKS) -> Counter[str]:
    return Counter(f"{batch} {task} {at}" for batch in batches for task in range(tasks) for at in range(ROWS))


@pytest.fixture
def query(cluster: AnyCluster, request: pytest.FixtureRequest) -> Query:
    name = request.node.originalname.removeprefix("test_")
    made = Query(cluster, name)
    create_topic(cluster.bootstrap_servers, made.topic, partitions=4)
    return made


def test_batches_come_once_with_keys_in_javas_partitions(query: Query) -> None:
    for batch in range(3):
        query.whole(batch)
    assert query.keys() == once([0, 1, 2])
    assert query.open() == []
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": query.cluster.bootstrap_servers,
            "group.id": "x",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([confluent.TopicPartition(query.topic, number, 0) for number in range(4)])
    message = consumer.poll(20)
    assert message is not None
    key = message.key() or b""
    assert message.partition() == key_partitions(pa.array([key]), 4)[0]
    assert message.timestamp()[1] == 1_700_000_000_000 + int(key.split()[2])
    consumer.close()


def test_nothing_is_visible_before_the_decision(query: Query) -> None:
    sink = query.plan()
    messages = query.run(sink, 0)
    assert len(query.open()) == TASKS
    assert sum(query.keys("read_uncommitted").values()) == TASKS * ROWS
    query.committer().commit(messages, 0)
    assert query.keys() == once([0])


def test_driver_killed_before_the_decision(query: Query) -> None:
    query.whole(0)
    query.run(query.plan(), 1)
    query.whole(1)
    assert query.keys() == once([0, 1])
    assert sum(query.keys("read_uncommitted").values()) == 3 * TASKS * ROWS


def test_driver_killed_after_the_decision(query: Query) -> None:
    sink = query.plan()
    messages = query.run(sink, 0)
    decider = messages[0].decider
    assert decider is not None
    query.decisions().decide(decider, Decision(0, [message.prepared for message in messages]))
    again = query.plan()
    assert query.keys() == once([0]), "rolled forward by the plan"
    replayed = query.run(again, 0)
    assert all(message.is_skipped for message in replayed)
    query.committer().commit(replayed, 0)
    query.whole(1)
    assert query.keys() == once([0, 1])


def test_driver_killed_between_commits(query: Query) -> None:
    messages = query.run(query.plan(), 0)
    decider = messages[0].decider
    assert decider is not None
    decision = Decision(0, [message.prepared for message in messages])
    query.decisions().decide(decider, decision)
    query.decisions().carry_out(Decision(0, decision.tasks[:1]))
    query.whole(0)
    assert query.keys() == once([0])


def test_transactions_that_brokers_aborted_are_written_again(query: Query) -> None:
    messages = query.run(query.plan(), 0)
    decider = messages[0].decider
    assert decider is not None
    query.decisions().decide(decider, Decision(0, [message.prepared for message in messages]))
    # As the coordinator does after the time-out.
    fence(connection(query.cluster), [messages[1].prepared.transactional_id])
    query.decisions().carry_out(Decision(0, [messages[0].prepared]))
    query.whole(0)
    assert query.keys() == once([0])
    query.whole(1)
    assert query.keys() == once([0, 1])


def test_aborted_before_the_decision_is_an_error_and_written_again(query: Query) -> None:
    messages = query.run(query.plan(), 0)
    fence(connection(query.cluster), [messages[1].prepared.transactional_id])
    with pytest.raises(KafkaError, match=r"tasks 1 .*kafka.transaction.timeout.ms.*nothing is committed"):
        query.committer().commit(messages, 0)
    query.committer().abort(messages)  # as Spark does
    assert query.keys() == Counter()
    query.whole(0)
    assert query.keys() == once([0])


def test_other_rows_in_a_replay_stop_it(query: Query) -> None:
    messages = query.run(query.plan(), 0)
    decider = messages[0].decider
    assert decider is not None
    decision = Decision(0, [message.prepared for message in messages])
    query.decisions().decide(decider, decision)
    fence(connection(query.cluster), [messages[1].prepared.transactional_id])
    assert query.decisions().carry_out(decision) == [1]
    again = query.plan()
    with pytest.raises(KafkaError, match=r"batch 0 can't be completed.*task 0 has other rows"):
        query.task(again, 0, 0, rows=frame(0, 0, ROWS - 1))
    with pytest.raises(KafkaError, match=r"it has 2 tasks and had 3"):
        query.committer().commit(query.run(again, 0, tasks=2), 0)
    reordered = frame(0, 0).take(pa.array(list(reversed(range(ROWS)))))
    last = query.plan()
    first = query.task(last, 0, 0, rows=reordered)
    query.committer().commit([first, *query.run(last, 0)[1:]], 0)
    assert query.keys() == once([0])


def test_zombie_driver_is_refused(query: Query) -> None:
    zombies = query.run(query.plan(), 0)
    query.whole(0)
    with pytest.raises(
        KafkaError, match=r"transactional\.id\.prefix=zombie_driver_is_refused; nothing is committed"
    ):
        query.committer().commit(zombies, 0)
    query.committer().abort(zombies)
    decider = zombies[0].decider
    assert decider is not None
    with pytest.raises(FencedError, match=r"another query.*transactional.id.prefix=zombie_driver_is_refused"):
        query.decisions().decide(decider, Decision(0, [message.prepared for message in zombies]))
    query.whole(1)
    assert query.keys() == once([0, 1])


def test_retried_and_speculative_tasks_come_once(query: Query) -> None:
    sink = query.plan()
    messages = query.run(sink, 0)
    other = query.task(sink, 0, 1, attempt=1)
    query.committer().commit([messages[0], other, messages[2]], 0)
    assert query.open() == [messages[1].prepared.transactional_id], "holds readers up"
    query.plan()
    assert query.open() == []
    assert query.keys() == once([0])


def test_a_failed_job_is_aborted_and_a_decided_one_is_not(query: Query) -> None:
    messages = query.run(query.plan(), 0)
    query.committer().abort([messages[0], None, messages[2]])
    assert query.open() == [messages[1].prepared.transactional_id]
    query.whole(0)
    assert query.keys() == once([0])
    messages = query.run(query.plan(), 1)
    decider = messages[0].decider
    assert decider is not None
    query.decisions().decide(decider, Decision(1, [message.prepared for message in messages]))
    query.committer().abort(messages)
    query.plan()
    assert query.keys() == once([0, 1])


def test_tasks_without_rows_have_no_transaction(query: Query) -> None:
    sink = query.plan()
    empty = query.task(sink, 0, 0, rows=frame(0, 0, 0))
    query.committer().commit([empty, query.task(sink, 0, 1)], 0)
    assert query.keys() == once([0]) - Counter(f"0 {task} {at}" for task in (0, 2) for at in range(ROWS))


def test_a_missing_right_to_transactional_ids_is_named(frail_cluster: LocalCluster) -> None:
    query = Query(frail_cluster, "forbidden")
    create_topic(frail_cluster.bootstrap_servers, query.topic)
    others = "TRANSACTIONAL_ID", "PREFIXED", "forbidden", "User:boss", "*", "WRITE", "ALLOW"
    own = "TRANSACTIONAL_ID", "LITERAL", "forbidden-decisions", "User:ANONYMOUS", "*", "WRITE", "ALLOW"
    with in_force(frail_cluster, others):
        with pytest.raises(AuthorizationError, match="needs WRITE on transactional id forbidden-decisions: "):
            query.plan()
        with (
            in_force(frail_cluster, own),
            pytest.raises(AuthorizationError, match="needs WRITE on transactional id forbidden-task-0-0: "),
        ):
            query.task(query.plan(), 0, 0)
    query.whole(0)
    assert sum(query.keys().values()) == TASKS * ROWS


def test_prefixes_share_the_topic_of_decisions(query: Query) -> None:
    other = Query(query.cluster, "prefixes_share_the_topic_of_decisions", "another")
    for batch in range(70):
        query.committer().commit([query.task(query.plan(), batch, 0, rows=frame(batch, 0, 1))], batch)
    other.committer().commit([other.task(other.plan(), 7, 0)], 7)
    last = query.decisions().last()
    assert last is not None
    assert last.batch == 69
    assert other.decisions().last() != last


def test_without_a_prefix_rows_are_written_at_least_once(query: Query) -> None:
    plain = Query(query.cluster, "without_a_prefix_rows_are_written_at_least_once", None)
    plain.whole(0)
    plain.run(plain.plan(), 1)  # the driver is killed
    plain.whole(1)
    assert plain.keys() == once([0]) + once([1]) + once([1])


def test_rows_name_topics_and_partitions(query: Query) -> None:
    other = f"{query.topic}.other"
    create_topic(query.cluster.bootstrap_servers, other, partitions=2)
    named = Query(query.cluster, "rows_name_topics_and_partitions")
    del named.options["topic"]
    rows = frame(0, 0, 4)
    topics = pa.array([query.topic, other, other, query.topic])
    partitions = pa.array([3, 1, None, 0], pa.int32())
    for name, column in (("topic", topics), ("partition", partitions)):
        rows = rows.append_column(name, column)
    named.committer().commit([named.task(named.plan(), 0, 0, rows=rows)], 0)
    assert set(named.keys()) == {"0 0 0", "0 0 3"}
    named.topic = other
    assert set(named.keys()) == {"0 0 1", "0 0 2"}
    wrong = frame(1, 0, 1).append_column("partition", pa.array([9], pa.int32()))
    with pytest.raises(ConfigError, match="has 4 partitions"):
        query.task(query.plan(), 1, 0, rows=wrong)
    missing = frame(1, 0, 1).append_column("topic", pa.array([None], pa.string()))
    with pytest.raises(ConfigError, match="a row has none"):
        named.task(named.plan(), 1, 0, rows=missing)


def test_missing_topic_is_named(query: Query) -> None:
    lost = Query(query.cluster, "nowhere", None, **{"kafka.request.timeout.ms": "1500"})
    with pytest.raises(KafkaError, match=r"write to sink\.nowhere"):
        lost.task(lost.plan(), 0, 0)


def test_a_decisions_topic_from_which_records_expire_is_refused(query: Query) -> None:
    create_topic(query.cluster.bootstrap_servers, "sink.expiring", config={"cleanup.policy": "delete"})
    query.options["decisions.topic"] = "sink.expiring"
    with pytest.raises(ConfigError, match=r"decisions\.topic"):
        query.plan()
