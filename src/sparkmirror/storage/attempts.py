"""Records who writes each partition: `mm2-attempts.<source>.internal` on the target cluster.

An attempt is one producer epoch with which one task writes one partition. It claims the epoch, writes its
record and reads all records: so of two attempts at least one knows of the other. An attempt that is not
closed may still write, and its successor fences it. The record is acknowledged before its first batch, and
again before each batch whose end can't be counted from it: so what is in the target's log can be looked up.

Compacted, one partition, a record for each attempt; those that are over are deleted by their successors.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.batches.producer import ProducerId
from sparkmirror.batches.record_batch import SEQUENCE_MODULUS
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.ids import (
    UNKNOWN_LOGS,
    Alias,
    LogIdentity,
    TopicPartition,
    decode_topic_id,
    encode_topic_id,
)
from sparkmirror.domain.rights import Need, how_to_grant
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicReader
from sparkmirror.kafka.transactions.fencing import FENCING_IDS
from sparkmirror.offsets.sequence_ends import SequenceEnd, decode_ends, encode_ends, end_behind


def missing_topic(source: Alias, target: ConnectionSettings) -> AuthorizationError:
    """Why attempts can't be recorded without their topic, which the driver creates unless that is denied."""
    topic = StateTopic.ATTEMPTS.of(source)
    grant = how_to_grant(Need.CREATE_TOPIC.of(topic), target)
    return AuthorizationError(
        f"{topic} does not exist: create it with one partition and cleanup.policy=compact, or let the mirror "
        f"create it: it {grant}"
    )


def owner_of(positions_topic: str, connector: str) -> str:
    """Return the owner of attempts: each connector with positions of its own has attempts of its own."""
    return f"{positions_topic}-{connector}"


def fencing_id(owner: str, cluster: Alias, source: TopicPartition) -> str:
    """The transactional id of a source partition: each has one, so that an attempt fences those before.

    `cluster` is the source's alias: flows with other sources may have the same owner, and one target topic.
    """
    return f"{FENCING_IDS}{owner}-{cluster}-{source.topic}-{source.partition}"


class Stage(Enum):
    CLAIMED = "claimed"
    """The attempt has written nothing yet."""
    OPEN = "open"
    CLOSED = "closed"
    """Everything it sent is acknowledged, and it sends nothing more."""


class Acknowledged(NamedTuple):
    """Counts acknowledged records of an attempt; all others come after this offset of the target."""

    records: int
    target_offset: int


class KnownEnd(NamedTuple):
    """The end of an attempt that is certainly acknowledged: all that follows is behind this target offset."""

    end: SequenceEnd
    target_offset: int

    @property
    def least_offset(self) -> int:
        """The offset where the attempt began, if no one else wrote since."""
        return self.target_offset - self.end.records


@dataclass(frozen=True, slots=True)
class Attempt:
    """`generation` counts the producer ids that the partition has had: epochs of another id say nothing.

    `ends` are those of `sequence_ends`, at least one but for a claim. What it wrote begins at the target's
    offset `target_offset`; a closed one has written everything below. `acknowledged` is known where ends were
    recorded behind its beginning. `logs` has the topics' ids; leader epochs are those of the ends.
    `positions_id` is the id of the topic of positions, as it was at its beginning.
    """

    producer: ProducerId
    generation: int
    stage: Stage = Stage.CLAIMED
    target_offset: int = 0
    ends: tuple[SequenceEnd, ...] = ()
    acknowledged: Acknowledged | None = None
    logs: LogIdentity = UNKNOWN_LOGS
    positions_id: bytes = b""

    @property
    def order(self) -> tuple[int, int]:
        return self.generation, self.producer.epoch

    @property
    def may_write(self) -> bool:
        return self.stage is not Stage.CLOSED

    @property
    def recorded_end(self) -> KnownEnd:
        """The end that the record tells. There must be one: a claim has none."""
        if self.stage is Stage.CLOSED:
            return KnownEnd(self.ends[-1], self.target_offset)
        if self.acknowledged is None:
            return KnownEnd(self.ends[0], self.target_offset)
        records, target_offset = self.acknowledged
        return KnownEnd(end_behind(self.ends, records % SEQUENCE_MODULUS), target_offset)


def attempt_record(
    owner: str, partition: TopicPartition, attempt: Attempt, ends: str | None = None
) -> LogRecord:
    """`ends` are its ends where they are encoded already."""
    value: dict[str, object] = {
        "state": attempt.stage.value,
        "generation": attempt.generation,
        "offset": attempt.target_offset,
    }
    if attempt.acknowledged is not None:
        value["acknowledged"] = attempt.acknowledged
    if attempt.logs != UNKNOWN_LOGS:
        value["source"] = encode_topic_id(attempt.logs.source_id)
        value["target"] = encode_topic_id(attempt.logs.target_id)
    if attempt.positions_id:
        value["positions"] = encode_topic_id(attempt.positions_id)
    json_of_ends = encode_ends(attempt.ends) if ends is None else ends
    text = compact_json(value).removesuffix(b"}") + f',"ends":{json_of_ends}}}'.encode()
    return LogRecord(_key(owner, partition, attempt.producer), text)


def deletion_record(owner: str, partition: TopicPartition, producer: ProducerId) -> LogRecord:
    return LogRecord(_key(owner, partition, producer), None)


class KnownAttempts:
    """The attempts of an owner, from records of their topic in its order."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._attempts: dict[TopicPartition, dict[ProducerId, Attempt]] = {}

    def add(self, records: Iterable[LogRecord]) -> None:
        newest: dict[bytes, LogRecord] = {record.key: record for record in records if record.key is not None}
        for key, record in newest.items():
            parsed = _parsed_key(key)
            if parsed is None or parsed[0] != self._owner:
                continue
            _, partition, producer = parsed
            attempts = self._attempts.setdefault(partition, {})
            if record.value is None:
                attempts.pop(producer, None)
            else:
                attempts[producer] = _attempt(producer, record.value)

    def of(self, partition: TopicPartition) -> list[Attempt]:
        """Return attempts from the oldest to the newest."""
        return sorted(self._attempts.get(partition, {}).values(), key=attrgetter("order"))


def recorded_attempts(
    records: Iterable[LogRecord],
) -> Iterator[tuple[str, TopicPartition, Attempt, int]]:
    """Every owner's attempts that are not deleted, with the time of their records in epoch ms."""
    newest = {record.key: record for record in records if record.key is not None}
    for key, record in newest.items():
        parsed = _parsed_key(key)
        if parsed is not None and record.value is not None:
            owner, partition, producer = parsed
            yield owner, partition, _attempt(producer, record.value), record.timestamp_ms or 0


class AttemptLog:
    """Reads the attempts of an owner, and later what changed since. Blocks; one owner, who closes it."""

    def __init__(self, settings: ConnectionSettings, topic: str, owner: str) -> None:
        self._reader = TopicReader(settings, topic)
        self._known = KnownAttempts(owner)

    def read(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, list[Attempt]]:
        """The attempts of each of the partitions, from the oldest to the newest. Raises KafkaError."""
        self._known.add(self._reader.read_to_end())
        return {partition: self._known.of(partition) for partition in partitions}

    def close(self) -> None:
        self._reader.close()


def _key(owner: str, partition: TopicPartition, producer: ProducerId) -> bytes:
    return compact_json([owner, *partition, *producer])


def _parsed_key(key: bytes) -> tuple[str, TopicPartition, ProducerId] | None:
    """Parse a key; None for a record that sparkmirror did not write."""
    match parsed_json(key):
        case [str(owner), str(topic), int(partition), int(number), int(epoch)]:
            return owner, TopicPartition(topic, partition), ProducerId(number, epoch)
        case _:
            return None


def _attempt(producer: ProducerId, value: bytes) -> Attempt:
    """A value that can't be read counts as a claim: its attempt is fenced, and says nothing."""
    try:
        match parsed_json(value):
            case {
                "state": str(state),
                "generation": int(generation),
                "offset": int(offset),
                "ends": ends,
            } as of:
                acknowledged = Acknowledged(*map(int, of["acknowledged"])) if "acknowledged" in of else None
                return Attempt(
                    producer,
                    generation,
                    Stage(state),
                    offset,
                    decode_ends(ends),
                    acknowledged,
                    _logs(of),
                    decode_topic_id(of.get("positions", "")),
                )
    except (ValueError, TypeError):
        pass
    return Attempt(producer, 0)


def _logs(value: Mapping[str, Any]) -> LogIdentity:
    """Versions before have recorded none."""
    source, target = (decode_topic_id(value.get(side, "")) for side in ("source", "target"))
    return LogIdentity(source_id=source, target_id=target)
