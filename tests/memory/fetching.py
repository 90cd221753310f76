"""Fetch: whole batches from an offset on, once there are enough of them or the time is over."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.protocol.consumer import FetchResponse

from sparkmirror.kafka.wire.error_codes import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.memory.fetch_sessions import Asked, Key, Session
from tests.memory.partition_log import Aborted, PartitionLog

if TYPE_CHECKING:
    from tests.memory.requests import Exchange

_BY_ID_FROM: Final = 13
_COMMITTED: Final = 1
_Topic = FetchResponse.FetchableTopicResponse
_Partition = _Topic.PartitionData


class Read(NamedTuple):
    """The records found of one partition."""

    key: Key
    error: int = NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    start: int = -1
    records: bytes = b""
    aborted: Sequence[Aborted] = ()
    diverging: tuple[int, int] | None = None
    is_news: bool = True

    @property
    def is_urgent(self) -> bool:
        """An error or a diverging epoch does not wait for data."""
        return self.error != NONE or self.diverging is not None

    def answer(self) -> Any:
        found = _Partition(
            partition_index=self.key.partition,
            error_code=self.error,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            log_start_offset=self.start,
            aborted_transactions=[
                _Partition.AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
                for one in self.aborted
            ],
            records=self.records,
        )
        if self.diverging is not None:
            epoch, end = self.diverging
            found.diverging_epoch = _Partition.EpochEndOffset(epoch=epoch, end_offset=end)
        return found


def fetch(exchange: "Exchange") -> Any:
    request = exchange.request
    session = exchange.broker.sessions.session(
        request.session_id, request.session_epoch, _wanted(exchange), _forgotten(exchange)
    )
    if isinstance(session, int):
        return FetchResponse(error_code=session, session_id=0, responses=[])
    is_full = request.session_epoch <= 0

    def try_to_reply(*, is_late: bool = False) -> bool:
        reads = _read_all(exchange, session)
        is_enough = sum(len(read.records) for read in reads) >= request.min_bytes
        if not (is_late or is_enough or any(read.is_urgent for read in reads)):
            return False
        news = [read for read in reads if is_full or read.is_news]
        if news:
            exchange.reply(_response(exchange, session, news), lambda: _tell(session, news))
        else:
            exchange.reply_as_before(("Fetch", session.id), lambda: _response(exchange, session, ()))
        return True

    if not try_to_reply(is_late=request.max_wait_ms <= 0):
        exchange.cluster.wait(try_to_reply, request.max_wait_ms / 1000, lambda: try_to_reply(is_late=True))
    return None


def throttled(exchange: "Exchange") -> Any:
    """The empty response of a broker that throttles: it begins no session, and says nothing (KIP-219)."""
    request = exchange.request
    session_id = request.session_id if request.session_epoch > 0 else 0
    return FetchResponse(error_code=NONE, session_id=session_id, responses=[])


def _wanted(exchange: "Exchange") -> dict[Key, Asked]:
    by_id = exchange.version >= _BY_ID_FROM
    return {
        Key(topic.topic_id if by_id else topic.topic, asked.partition): Asked(
            asked.fetch_offset,
            -1 if asked.current_leader_epoch is None else asked.current_leader_epoch,
            -1 if asked.last_fetched_epoch is None else asked.last_fetched_epoch,
            asked.partition_max_bytes,
        )
        for topic in exchange.request.topics
        for asked in topic.partitions
    }


def _forgotten(exchange: "Exchange") -> list[Key]:
    by_id = exchange.version >= _BY_ID_FROM
    return [
        Key(topic.topic_id if by_id else topic.topic, partition)
        for topic in exchange.request.forgotten_topics_data or ()
        for partition in topic.partitions
    ]


def _read_all(exchange: "Exchange", session: Session) -> list[Read]:
    left = min(exchange.request.max_bytes, exchange.cluster.quotas.consumer.window_bytes)
    reads: list[Read] = []
    has_data = False
    for key, asked in session.wanted.items():
        read = _read(exchange, session, key, asked, left, whole_first=not has_data)
        has_data = has_data or bool(read.records)
        left -= len(read.records)
        reads.append(read)
    return reads


def _read(
    exchange: "Exchange", session: Session, key: Key, asked: Asked, left: int, *, whole_first: bool
) -> Read:
    log = _log(exchange, key)
    error = log if isinstance(log, int) else _error(exchange, log, asked)
    if isinstance(log, int) or error != NONE:
        return Read(key, error)
    committed = exchange.request.isolation_level == _COMMITTED
    end = log.last_stable_offset if committed else log.high_watermark
    found = Read(key, NONE, log.high_watermark, log.last_stable_offset, log.start)
    diverging = _diverging(log, asked)
    if diverging is not None:
        return found._replace(diverging=diverging)
    records = b""
    if left > 0 or whole_first:
        records = log.read(asked.offset, min(asked.bytes_max, left), end, whole_first=whole_first)
    return found._replace(
        records=records,
        aborted=log.aborted_between(asked.offset, end) if committed else (),
        is_news=bool(records) or session.told.get(key) != (log.high_watermark, log.start),
    )


def _log(exchange: "Exchange", key: Key) -> PartitionLog | int:
    cluster = exchange.cluster
    if isinstance(key.topic, str):
        topic, missing = cluster.topics.get(key.topic), UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic, missing = cluster.topic_by_id(key.topic), UNKNOWN_TOPIC_ID
    if topic is None:
        return missing
    if any(topic is cluster.topics.get(name) for name in cluster.unreadable):
        return TOPIC_AUTHORIZATION_FAILED
    if key.partition >= len(topic.partitions):
        return UNKNOWN_TOPIC_OR_PARTITION
    return topic.partitions[key.partition]


def _error(exchange: "Exchange", log: PartitionLog, asked: Asked) -> int:
    if 0 <= asked.leader_epoch < log.epoch:
        return FENCED_LEADER_EPOCH
    if asked.leader_epoch > log.epoch:
        return UNKNOWN_LEADER_EPOCH
    if log.leader != exchange.broker.node_id:
        return NOT_LEADER_OR_FOLLOWER
    if asked.read_epoch > log.epoch:
        return OFFSET_OUT_OF_RANGE
    if _diverging(log, asked) is not None:
        return NONE
    return NONE if log.start <= asked.offset <= log.end else OFFSET_OUT_OF_RANGE


def _diverging(log: PartitionLog, asked: Asked) -> tuple[int, int] | None:
    """Return where the log diverges, by the epoch of the last record read (KIP-595)."""
    if asked.read_epoch < 0:
        return None
    epoch, end = log.end_of_epoch(asked.read_epoch)
    return (epoch, end) if epoch < asked.read_epoch or end < asked.offset else None


def _tell(session: Session, news: Sequence[Read]) -> None:
    for read in news:
        session.told[read.key] = read.high_watermark, read.start
        if read.records:  # who had data comes last next time
            session.wanted[read.key] = session.wanted.pop(read.key)


def _response(exchange: "Exchange", session: Session, news: Sequence[Read]) -> Any:
    by_topic: dict[Any, list[Any]] = {}
    for read in news:
        by_topic.setdefault(read.key.topic, []).append(read.answer())
    name = "topic_id" if exchange.version >= _BY_ID_FROM else "topic"
    topics = [_Topic(**{name: topic, "partitions": answers}) for topic, answers in by_topic.items()]
    return FetchResponse(error_code=NONE, session_id=session.id, responses=topics)
