"""Writes the dead letters of batches that were skipped, and explains how to fix a batch that is refused.

A task skips a batch under `on.bad.batch=skip`; the partition resumes behind it when its dead letter is
acknowledged.
"""

from collections.abc import Iterable
from contextlib import closing

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.wire.error_codes import (
    BAD_BATCH,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
)
from sparkmirror.storage.dead_letters import DeadLetter

_LIMIT = "raise max.message.bytes of {topic} on {cluster}"
_FIXES = {
    MESSAGE_TOO_LARGE: _LIMIT,
    RECORD_LIST_TOO_LARGE: _LIMIT,
    INVALID_TIMESTAMP: (
        "raise message.timestamp.before.max.ms or message.timestamp.after.max.ms of {topic} on {cluster}"
    ),
    INVALID_RECORD: (
        "a compacted topic takes no record without a key: change cleanup.policy of {topic} on {cluster}"
    ),
}
_SKIP = "on.bad.batch=skip leaves it out"


def is_about_the_batch(error: SparkmirrorError) -> bool:
    """Whether the batch's contents or size are refused, and not its writer or its partition."""
    return error.code in BAD_BATCH


def with_fix(error: SparkmirrorError, topic: str, cluster: str) -> KafkaError:
    """Extend the error by the settings of the target's topic that would let the batch through."""
    fix = _FIXES.get(error.code)
    advice = _SKIP if fix is None else f"{fix.format(topic=topic, cluster=cluster)}, or {_SKIP}"
    return KafkaError(f"{error}; {advice}", error.code)


def write_dead_letters(plan: TaskPlan, letters: Iterable[DeadLetter]) -> None:
    """Write them to the target, and wait for the acknowledgement. Raises KafkaError."""
    records = [letter.to_record() for letter in letters]
    if records:
        with closing(TopicWriter(plan.state.connection)) as writer:
            writer.write(StateTopic.DEAD_LETTERS.of(plan.flow.source), records)
