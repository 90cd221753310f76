"""The error tree. A class says whether trying again can help; none knows HTTP or exit codes.

SparkmirrorError
├── ConfigError              a setting is missing, malformed or unsupported
├── CorruptBatchError        bytes that are no valid record batch
├── ClusterStartError        a local broker did not start
├── JavaMissingError         no usable Java 17+ on this machine
└── KafkaError               what a broker or the way to it answered
    ├── RetriableError       trying again can help (leader moved, time-out, …)
    │   └── DisconnectedError    the connection broke or could not be made
    ├── UnsupportedVersionError  the broker is too old for what is needed
    ├── TopicExistsError
    └── AuthorizationError   an ACL is missing
"""

from typing import ClassVar


class SparkmirrorError(Exception):
    """Root of every error that this package raises on purpose."""

    retriable: ClassVar[bool] = False


class ConfigError(SparkmirrorError):
    """A setting can't be used. `str()` names the key, the value and what is wrong with it."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        self.key = key
        self.value = value
        self.reason = reason
        shown = "" if value is None else f" = {value!r}"
        super().__init__(f"{key}{shown}: {reason}")


class CorruptBatchError(SparkmirrorError):
    """Bytes that claim to be a record batch and are not."""


class ClusterStartError(SparkmirrorError):
    """A local broker did not start; the message holds the end of its log."""


class JavaMissingError(SparkmirrorError):
    """No Java 17 or newer was found; the message holds the command that installs one."""


class KafkaError(SparkmirrorError):
    """What a broker, or the way to it, answered. `code` is Kafka's error code, 0 if there is none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class RetriableError(KafkaError):
    """Trying again can help."""

    retriable = True


class DisconnectedError(RetriableError):
    """The connection broke, timed out, or could not be made."""


class UnsupportedVersionError(KafkaError):
    """The broker doesn't speak the version of an API that is needed."""


class TopicExistsError(KafkaError):
    """Somebody created the topic first."""


class AuthorizationError(KafkaError):
    """The principal lacks a right; the message names resource and operation as far as known."""
