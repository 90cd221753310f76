"""Defines the error tree. A class states whether a retry can help; none knows HTTP or exit codes.

SparkmirrorError
├── ConfigError              a setting is missing, malformed or unsupported
│   ├── InvalidConfigError   several such settings, reported together
│   └── InFileError          such a setting with the file that it is in
├── CorruptBatchError        bytes that are no valid record batch
├── MalformedRecordError     a key or value that is none of MM2's
├── ClusterStartError        a local broker did not start
├── JarsError                Kafka's jars can't be fetched or are not the recorded ones
├── NotInstalledError        no usable Java 17+, or no PySpark, where it is needed
├── PluginError              a plug-in raised, or returned an invalid value
├── SupersededError          another process copies the flow now
├── SameClusterError         source and target of a flow are one cluster
├── FlowError                a flow can't run in this process, for the reason that it holds
└── KafkaError               an error code of a broker, or a failed connection
    ├── RetriableError       a retry can help (leader moved, time-out, …)
    │   ├── DisconnectedError    the connection broke or could not be made
    │   ├── ThrottledError       a quota of the cluster lets nothing through
    │   └── UnclearTransactionError  the transactional id must be initialised again
    ├── FencedError          another producer has the transactional id or the partition now
    ├── StandbyError         the target is what the source was copied from
    ├── UnsupportedVersionError  the broker is too old for what is needed
    ├── ClusterChangedError  another cluster answers than the one that is meant
    ├── TopicExistsError
    ├── AuthenticationError  a broker refused the login, or there is nothing to log in with
    └── AuthorizationError   an ACL is missing
"""

from collections.abc import Sequence
from typing import ClassVar


class SparkmirrorError(Exception):
    """Root of every error that this package raises on purpose."""

    retriable: ClassVar[bool] = False
    restart_helps: bool = True
    """Whether the same start may succeed later, with no setting changed."""
    code: int = 0
    """Kafka's error code, 0 if there is none."""


class ConfigError(SparkmirrorError):
    """A setting can't be used. `str()` reads as Kafka's ConfigException does: key, value, reason.

    `value` is what may be shown: None when there is none, `[hidden]` for a secret. `line` is the file's.
    """

    restart_helps = False

    def __init__(self, key: str, value: object, reason: str, line: int | None = None) -> None:
        self.key = key
        self.value = value
        self.reason = reason
        self.line = line
        where = key if line is None else f"{key} (line {line})"
        what = where if value is None else f"Invalid value {value} for configuration {where}"
        super().__init__(f"{what}: {reason}")


class InFileError(ConfigError):
    """A setting of a file can't be used; `str()` begins with the file."""

    def __init__(self, file: str, error: ConfigError) -> None:
        super().__init__(error.key, error.value, error.reason, error.line)
        self._text = f"{file}: {error}"

    def __str__(self) -> str:
        return self._text


class UnfitTopicError(ConfigError):
    """A topic that a setting names exists, and would lose what is kept there. `value` is its name."""


class InvalidConfigError(ConfigError):
    """Several settings can't be used. `errors` holds each; `str()` has a line for each."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.key, first.value, first.reason, first.line)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


class CorruptBatchError(SparkmirrorError):
    """Bytes that claim to be a record batch and are not."""


class MalformedRecordError(SparkmirrorError):
    """The key or value of a record in one of MM2's topics ends too early, or can't be written."""


class ClusterStartError(SparkmirrorError):
    """A local broker did not start; the message holds its cause."""


class JarsError(SparkmirrorError):
    """Kafka's jars could not be fetched, or are not those whose sums were recorded."""


class NotInstalledError(SparkmirrorError):
    """This machine lacks Java or a Python package; the message holds the command that installs it."""


class PluginError(SparkmirrorError):
    """A plug-in raised, or returned an invalid value; the message names it, the method and its arguments."""


class SupersededError(SparkmirrorError):
    """Another process has announced a copy job of the flow since; the message names that process."""

    restart_helps = False


class SameClusterError(SparkmirrorError):
    """Two aliases of a flow lead to one cluster, whose topics would be mirrored into it again and again."""

    restart_helps = False


class FlowError(SparkmirrorError):
    """A flow can't run in this process; the message names the flow and the reason."""

    def __init__(self, flow: object, reason: SparkmirrorError) -> None:
        super().__init__(f"{flow}: {reason}")
        self.restart_helps = reason.restart_helps


class KafkaError(SparkmirrorError):
    """A broker responded with an error, or could not be reached."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class RetriableError(KafkaError):
    """A retry can help."""

    retriable = True


class DisconnectedError(RetriableError):
    """The connection broke, timed out, or could not be made."""


class ThrottledError(RetriableError):
    """A quota of the cluster has let nothing through for long."""


class UnclearTransactionError(RetriableError):
    """Says that it is unknown whether a transaction was committed; initialise and read positions again."""


class FencedError(KafkaError):
    """Another producer has taken over the transactional id, or the partition, which may be promoted.

    Or the coordinator has aborted the transaction after its time-out.
    """


class StandbyError(KafkaError):
    """The flow waits for a failback: the opposite flow has copied the source from the target."""


class UnsupportedVersionError(KafkaError):
    """The broker doesn't speak the version of an API that is needed."""


class ClusterChangedError(KafkaError):
    """A broker belongs to another cluster than the one that is meant; the message has both ids."""


class TopicExistsError(KafkaError):
    """The topic exists already."""


class AuthenticationError(KafkaError):
    """A login failed; the message names broker, mechanism and remedy, and holds no secret."""


class AuthorizationError(KafkaError):
    """The principal lacks a right; the message names resource and operation as far as known."""
