"""Explains to users why a batch is refused, and how to fix it."""

from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.kafka.error_codes import (
    BAD_BATCH,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    RECORD_LIST_TOO_LARGE,
)

_LIMIT = "raise max.message.bytes of {topic} on the target"
_FIXES = {
    MESSAGE_TOO_LARGE: _LIMIT,
    RECORD_LIST_TOO_LARGE: _LIMIT,
    INVALID_TIMESTAMP: (
        "raise message.timestamp.before.max.ms or message.timestamp.after.max.ms of {topic} on the target"
    ),
    INVALID_RECORD: "a compacted topic takes no record without a key: change cleanup.policy of {topic}",
}
_SKIP = "on.bad.batch=skip leaves it out"


def is_about_the_batch(error: SparkmirrorError) -> bool:
    """Whether the batch's contents or size are refused, and not its writer or its partition."""
    return error.code in BAD_BATCH


def with_fix(error: SparkmirrorError, target_topic: str) -> KafkaError:
    """The same error, with what to do."""
    fix = _FIXES.get(error.code)
    advice = _SKIP if fix is None else f"{fix.format(topic=target_topic)}, or {_SKIP}"
    return KafkaError(f"{error}; {advice}", error.code)
