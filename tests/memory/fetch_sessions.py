"""Fetch sessions of a broker (KIP-227): what each client asked for, and what it was told of it."""

import uuid
from typing import NamedTuple

_INITIAL_EPOCH = 0
_FINAL_EPOCH = -1
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71


class Key(NamedTuple):
    """A partition as the request names it: by the topic's name, or by its id."""

    topic: str | uuid.UUID
    partition: int


class Asked(NamedTuple):
    """The offset and epochs from which a partition is to be read."""

    offset: int
    leader_epoch: int
    read_epoch: int
    bytes_max: int


class Session:
    """`told` has the high watermark and log start that the client knows."""

    def __init__(self, session_id: int) -> None:
        self.id = session_id
        self.epoch = 1
        self.wanted: dict[Key, Asked] = {}
        self.told: dict[Key, tuple[int, int]] = {}


class FetchSessions:
    """The sessions of one broker."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._next_id = 1

    def session(
        self, session_id: int, epoch: int, wanted: dict[Key, Asked], forgotten: list[Key]
    ) -> Session | int:
        """The session as the request leaves it, one of id 0 for a request without, or an error's code."""
        if epoch == _FINAL_EPOCH:
            self._sessions.pop(session_id, None)
            return _alone(wanted)
        if epoch == _INITIAL_EPOCH:
            self._sessions.pop(session_id, None)
            self._next_id += 1
            session = self._sessions[self._next_id] = Session(self._next_id)
            session.wanted = dict(wanted)
            return session
        found = self._sessions.get(session_id)
        if found is None:
            return FETCH_SESSION_ID_NOT_FOUND
        if found.epoch != epoch:
            return INVALID_FETCH_SESSION_EPOCH
        found.epoch += 1
        for key in forgotten:
            found.wanted.pop(key, None)
            found.told.pop(key, None)
        found.wanted.update(wanted)
        return found


def _alone(wanted: dict[Key, Asked]) -> Session:
    session = Session(0)
    session.wanted = dict(wanted)
    return session
