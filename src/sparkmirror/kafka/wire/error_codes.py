"""Translates Kafka's error codes into this project's errors."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kafka import errors as library

from sparkmirror.domain.acls import ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import (
    AuthorizationError,
    DisconnectedError,
    KafkaError,
    RetriableError,
    TopicExistsError,
    UnsupportedVersionError,
)
from sparkmirror.domain.rights import Right, how_to_grant

T = TypeVar("T")

UNKNOWN_SERVER_ERROR = -1
NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
MESSAGE_TOO_LARGE = 10
OFFSET_METADATA_TOO_LARGE = 12
NETWORK_EXCEPTION = 13
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
RECORD_LIST_TOO_LARGE = 18
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
ILLEGAL_GENERATION = 22
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_TIMESTAMP = 32
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
INVALID_REQUEST = 42
POLICY_VIOLATION = 44
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
DUPLICATE_SEQUENCE_NUMBER = 46
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
INVALID_TRANSACTION_TIMEOUT = 50
CONCURRENT_TRANSACTIONS = 51
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
SECURITY_DISABLED = 54
KAFKA_STORAGE_ERROR = 56
UNKNOWN_PRODUCER_ID = 59
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
INVALID_RECORD = 87
THROTTLING_QUOTA_EXCEEDED = 89
PRODUCER_FENCED = 90
UNKNOWN_TOPIC_ID = 100
INCONSISTENT_TOPIC_ID = 103
FETCH_SESSION_TOPIC_ID_ERROR = 106
TRANSACTION_ABORTABLE = 120
DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65

LEADER_CHANGED = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        LEADER_NOT_AVAILABLE,
        NOT_LEADER_OR_FOLLOWER,
        KAFKA_STORAGE_ERROR,
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        UNKNOWN_TOPIC_ID,
        INCONSISTENT_TOPIC_ID,
    }
)
"""Codes after which the cluster's metadata must be read again."""

FETCH_SESSION_LOST = frozenset(
    {FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR}
)

WORTH_HALVING = frozenset({MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD})
"""Refusals of a batch that its halves need not get: they fit, or only one holds the refused record."""

BAD_BATCH = WORTH_HALVING | {CORRUPT_MESSAGE}
"""Refusals because of a batch's contents or size, and not because of its writer or partition."""

UNCLEAR = frozenset(
    {
        UNKNOWN_SERVER_ERROR,
        NONE,
        REQUEST_TIMED_OUT,
        NETWORK_EXCEPTION,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KAFKA_STORAGE_ERROR,
    }
)
"""After these (NONE: no response at all) a batch may be in the log or not."""

SEQUENCE_UNKNOWN = frozenset({OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID})
"""The broker expects another sequence number: the batches in the log show where to continue."""

TRANSACTION_LOST = frozenset(
    {
        INVALID_TXN_STATE,
        INVALID_PRODUCER_ID_MAPPING,
        PRODUCER_FENCED,
        TRANSACTION_ABORTABLE,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Codes of Produce after which its transaction can't be committed."""

_REFUSED = frozenset({CORRUPT_MESSAGE, INVALID_TIMESTAMP, INVALID_RECORD})
"""Codes that the same batch gets every time; the library calls CORRUPT_MESSAGE retriable, for consumers."""


_DENIED = {
    TOPIC_AUTHORIZATION_FAILED: ResourceType.TOPIC,
    GROUP_AUTHORIZATION_FAILED: ResourceType.GROUP,
    CLUSTER_AUTHORIZATION_FAILED: ResourceType.CLUSTER,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ResourceType.TRANSACTIONAL_ID,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED: ResourceType.DELEGATION_TOKEN,
}
"""Codes of missing rights, and the resource type of each."""


class Needed(NamedTuple):
    """The rights that a request needs, one per resource type, and the connection that sends it."""

    connection: ConnectionSettings
    rights: tuple[Right, ...]


_NAMES = {
    NONE: "NONE",
    NOT_LEADER_OR_FOLLOWER: "NOT_LEADER_OR_FOLLOWER",
    MESSAGE_TOO_LARGE: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
}
"""Names of Kafka's documentation that the library spells differently."""


def name_of(code: int) -> str:
    """Kafka's own name, e.g. `NOT_LEADER_OR_FOLLOWER`; the number for a code that the library lacks."""
    known = library.kafka_errors.get(code)
    return f"error code {code}" if known is None else _NAMES.get(code, str(known.message))


def is_retriable(code: int) -> bool:
    return code not in _REFUSED and bool(getattr(library.for_code(code), "retriable", False))


def error_for(code: int, context: str, detail: str | None = None, needed: Needed | None = None) -> KafkaError:
    """Return the error for one of Kafka's codes; `context` is the request, `detail` the reason.

    Where a right is missing that `needed` has, the error explains how to grant it.
    """
    if code in _DENIED:  # the detail is the broker's own text about its request
        return AuthorizationError(f"{context}: {name_of(code)}{_how_to_grant(code, needed)}", code)
    message = f"{context}: {name_of(code)}" + (f" ({detail})" if detail else "")
    if code == TOPIC_ALREADY_EXISTS:
        return TopicExistsError(message, code)
    if code == UNSUPPORTED_VERSION:
        return UnsupportedVersionError(message, code)
    if is_retriable(code):
        return RetriableError(message, code)
    return KafkaError(message, code)


def _how_to_grant(code: int, needed: Needed | None) -> str:
    if needed is not None:
        for right in needed.rights:
            if right.resource_type is _DENIED[code]:
                return f"; {how_to_grant(right, needed.connection)}"
    return ""


def check(code: int, context: str, needed: Needed | None = None) -> None:
    """Raise the error for a code that is not 0."""
    if code != NONE:
        raise error_for(code, context, needed=needed)


def unless_missing(read: Callable[[], T], otherwise: T) -> T:
    """Return the result of `read`, or `otherwise` if the topic doesn't exist.

    Raises every other KafkaError.
    """
    try:
        return read()
    except KafkaError as error:
        if error.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return otherwise


def translate(error: Exception, context: str, needed: Needed | None = None) -> KafkaError:
    """Return the error for one that the Kafka library raised; raise it `from` the original."""
    code = getattr(error, "errno", 0)
    if isinstance(code, int) and code > 0 and isinstance(error, library.BrokerResponseError):
        return error_for(code, context, ", ".join(map(str, error.args)), needed)
    if isinstance(error, library.KafkaConnectionError | library.KafkaTimeoutError | OSError):
        return DisconnectedError(f"{context}: {_reason(error)}")
    if isinstance(error, library.IncompatibleBrokerVersion):
        return UnsupportedVersionError(f"{context}: {_reason(error)}")
    if getattr(error, "retriable", False):
        return RetriableError(f"{context}: {_reason(error)}")
    return KafkaError(f"{context}: {_reason(error)}")


def _reason(error: Any) -> str:
    name, text = type(error).__name__, str(error)
    return text if text.startswith(name) else f"{name}: {text}"
