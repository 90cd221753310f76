"""The brokers that coordinate consumer groups: found for many groups at once, asked, followed when they move.

A coordinator that does not answer, or is loading, costs its own groups this round and nobody else's.
"""

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, KafkaError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.connection import Connection
from sparkmirror.kafka.error_codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
    Needed,
    error_for,
)
from sparkmirror.kafka.metadata import Address, connect_to_any

_GROUPS_PER_REQUEST = 500
"""An answer with thousands of groups of many partitions each is large, and its broker busy for a while."""

_GROUP_KEY = 0
_FIND_MANY_FROM = 4
_ANSWER_TIMEOUT_S = 10.0
"""Who coordinates groups and says nothing for so long is left for the next round."""

_READY_TIMEOUT_S = 5.0
_READY = Backoff(0.1, 1.0)

_ELSEWHERE = frozenset({COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
"""Answers after which a group's coordinator is looked up again."""
NOT_READY = _ELSEWHERE | {COORDINATOR_LOAD_IN_PROGRESS}

Ask = Callable[[Connection, Sequence[GroupId], float], Mapping[GroupId, Any]]
"""One request for these groups within so many seconds. Every group has an answer or a KafkaError."""


class GroupCoordinators:
    """Blocks. Not thread-safe: one owner. Connects when it's first asked."""

    def __init__(self, settings: ConnectionSettings, cluster: str) -> None:
        """`cluster` names it in errors: an alias."""
        patience_s = min(settings.request_timeout_s, _ANSWER_TIMEOUT_S)
        self._settings = replace(
            settings,
            request_timeout_s=patience_s,
            connect_timeout_s=min(settings.connect_timeout_s, patience_s),
        )
        self._cluster = cluster
        self._addresses: dict[GroupId, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._silent: set[Address] = set()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def ask(self, groups: Collection[GroupId], ask: Ask) -> Iterator[Mapping[GroupId, Any]]:
        """Answers, or a KafkaError, for every group: a part for each request, one request at a time.

        Groups whose coordinator has moved, or is about to be ready, come last, and are waited for a few
        seconds. Raises DisconnectedError when nobody in the cluster answers.
        """
        left: Collection[GroupId] = groups
        deadline, failures = time.monotonic() + _READY_TIMEOUT_S, 0
        while left:
            is_last = time.monotonic() >= deadline
            later: list[GroupId] = []
            for part in self._ask_each(left, ask):
                postponed = (
                    {} if is_last else {group: answer for group, answer in part.items() if _is_later(answer)}
                )
                later += postponed
                if len(postponed) < len(part):
                    yield {group: answer for group, answer in part.items() if group not in postponed}
            if later:
                failures += 1
                time.sleep(_READY.delay_s(failures, random.random()))
            left = later

    def _ask_each(self, groups: Collection[GroupId], ask: Ask) -> Iterator[Mapping[GroupId, Any]]:
        if unfound := self._find(groups):
            yield unfound
        for address, led in self._by_coordinator(groups).items():
            for answers in self._ask_coordinator(address, led, ask):
                for group, answer in answers.items():
                    if isinstance(answer, KafkaError) and answer.code in _ELSEWHERE:
                        self._addresses.pop(group, None)
                yield answers

    def _ask_coordinator(
        self, address: Address, groups: Collection[GroupId], ask: Ask
    ) -> Iterator[Mapping[GroupId, Any]]:
        left = _chunks(groups, _GROUPS_PER_REQUEST)
        while left:
            some = left.pop(0)
            try:
                yield self._ask_one(address, some, ask)
                self._silent.discard(address)
            except DisconnectedError as error:
                self._silent.add(address)
                lost = [*some, *chain.from_iterable(left)]
                for group in lost:
                    self._addresses.pop(group, None)
                yield dict.fromkeys(lost, error)
                return
            except KafkaError as error:
                yield dict.fromkeys(some, error)

    def _ask_one(self, address: Address, groups: list[GroupId], ask: Ask) -> Mapping[GroupId, Any]:
        """A connection that its broker has closed meanwhile is made anew, once."""
        is_new, began = address not in self._connections, time.monotonic()
        timeout_s = self._settings.request_timeout_s
        try:
            return ask(self._connection(address), groups, timeout_s)
        except DisconnectedError:
            self._drop(address)
            if is_new or time.monotonic() - began > timeout_s / 2:
                raise
            return ask(self._connection(address), groups, timeout_s)

    def _connection(self, address: Address) -> Connection:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = Connection.open(*address, self._settings)
        return connection

    def _drop(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()

    def _by_coordinator(self, groups: Collection[GroupId]) -> Mapping[Address, list[GroupId]]:
        """Who has said nothing the last time comes last, so that it delays nobody else."""
        led: dict[Address, list[GroupId]] = {}
        for group in groups:
            if group in self._addresses:
                led.setdefault(self._addresses[group], []).append(group)
        return dict(sorted(led.items(), key=lambda item: item[0] in self._silent))

    def _find(self, groups: Collection[GroupId]) -> Mapping[GroupId, KafkaError]:
        """Look up those that are not known; why some could not be found."""
        unknown = [group for group in groups if group not in self._addresses]
        errors: dict[GroupId, KafkaError] = {}
        if unknown:
            with closing(connect_to_any(self._settings)) as connection:
                for group, answer in self._coordinators(connection, unknown):
                    if answer.error_code == NONE:
                        self._addresses[group] = (answer.host, answer.port)
                    else:
                        what = f"find the coordinator of group {group} on {self._cluster}"
                        needed = Needed(self._settings, (Need.DESCRIBE_GROUP.of(group),))
                        errors[group] = error_for(answer.error_code, what, answer.error_message, needed)
        return errors

    def _coordinators(
        self, connection: Connection, groups: Collection[GroupId]
    ) -> Iterator[tuple[GroupId, Any]]:
        offered = connection.versions.get(FindCoordinatorRequest.API_KEY)
        finds_many = offered is not None and offered.high >= _FIND_MANY_FROM
        for some in _chunks(groups, _GROUPS_PER_REQUEST if finds_many else 1):
            if finds_many:
                request = FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=some)
            else:
                request = FindCoordinatorRequest(key=some[0], key_type=_GROUP_KEY)
            response = connection.request(
                request, FindCoordinatorResponse, timeout_s=self._settings.request_timeout_s
            )
            if finds_many:
                for answer in response.coordinators:
                    yield GroupId(answer.key), answer
            else:
                yield some[0], response


def _chunks(groups: Collection[GroupId], size: int) -> list[list[GroupId]]:
    left = iter(groups)
    made = []
    while chunk := list(islice(left, size)):
        made.append(chunk)
    return made


def _is_later(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.code in NOT_READY
