"""Which logs a position is about: a name alone does not tell a topic from its successor."""

from typing import NamedTuple


class LogIdentity(NamedTuple):
    """Topic ids (KIP-516), and the leader epoch under which the source was read last (KIP-101).

    Ids are empty and the epoch is -1 where they are not known: old brokers, positions of Java MM2.
    """

    source_id: bytes = b""
    source_epoch: int = -1
    target_id: bytes = b""


UNKNOWN_LOGS = LogIdentity()


def is_another(known: bytes, current: bytes) -> bool:
    """Whether these are the ids of two topics, as far as anybody can tell."""
    return bool(known and current) and known != current
