"""Asks the coordinators of many groups, and looks them up again when they move.

A coordinator that does not respond, or is loading, delays its own groups in this round and no others.
"""

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from sparkmirror.domain.backoff import Backoff
from sparkmirror.domain.errors import DisconnectedError, KafkaError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.known_brokers import Address
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.cluster import KEYS_PER_REQUEST, Cluster, CoordinatorKind
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.transport import network_of
from sparkmirror.kafka.wire.error_codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NONE,
    NOT_COORDINATOR,
)

_RESPONSE_TIMEOUT_S = 10.0
"""A coordinator that does not respond for so long is left for the next round."""

_READY_TIMEOUT_S = 5.0
_READY = Backoff(0.1, 1.0)

_MOVED = frozenset({COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
"""Error codes after which a group's coordinator is looked up again."""
NOT_READY = _MOVED | {COORDINATOR_LOAD_IN_PROGRESS}

GroupExchange = Callable[[Connection, Sequence[GroupId], float], Mapping[GroupId, Any]]
"""One request for these groups within so many seconds. Every group has a result or a KafkaError."""


class GroupCoordinators:
    """Sends requests to coordinators, blocking. Not thread-safe; the owner closes the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._network = network_of(cluster.settings)
        self._timeout_s = min(cluster.settings.request_timeout_s, _RESPONSE_TIMEOUT_S)
        self._addresses: dict[GroupId, Address] = {}
        self._silent: set[Address] = set()

    def ask(self, groups: Collection[GroupId], exchange: GroupExchange) -> Iterator[Mapping[GroupId, Any]]:
        """Results, or a KafkaError, for every group: a part for each request, one request at a time.

        Groups whose coordinator has moved, or is about to be ready, come last; they are asked for again for a
        few seconds. Raises DisconnectedError when no broker of the cluster responds.
        """
        left: Collection[GroupId] = groups
        deadline, failures = self._network.time() + _READY_TIMEOUT_S, 0
        while left:
            is_last = self._network.time() >= deadline
            later: list[GroupId] = []
            for part in self._ask_each(left, exchange):
                postponed = (
                    {} if is_last else {group: found for group, found in part.items() if _is_later(found)}
                )
                later += postponed
                if len(postponed) < len(part):
                    yield {group: found for group, found in part.items() if group not in postponed}
            if later:
                failures += 1
                self._network.sleep(_READY.delay_s(failures, random.random()))
            left = later

    def _ask_each(
        self, groups: Collection[GroupId], exchange: GroupExchange
    ) -> Iterator[Mapping[GroupId, Any]]:
        if unfound := self._find(groups):
            yield unfound
        for address, led in self._by_coordinator(groups).items():
            for results in self._ask_coordinator(address, led, exchange):
                for group, result in results.items():
                    if isinstance(result, KafkaError) and result.code in _MOVED:
                        self._addresses.pop(group, None)
                yield results

    def _ask_coordinator(
        self, address: Address, groups: Collection[GroupId], exchange: GroupExchange
    ) -> Iterator[Mapping[GroupId, Any]]:
        left = _chunks(groups)
        while left:
            some = left.pop(0)
            try:
                yield self._ask_one(address, some, exchange)
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

    def _ask_one(
        self, address: Address, groups: list[GroupId], exchange: GroupExchange
    ) -> Mapping[GroupId, Any]:
        timeout_s = self._timeout_s
        return self._cluster.exchange(
            lambda connection: exchange(connection, groups, timeout_s), address, timeout_s=timeout_s
        )

    def _by_coordinator(self, groups: Collection[GroupId]) -> Mapping[Address, list[GroupId]]:
        """Group keys by coordinator. Coordinators that did not respond the last time come last."""
        led: dict[Address, list[GroupId]] = {}
        for group in groups:
            if group in self._addresses:
                led.setdefault(self._addresses[group], []).append(group)
        return dict(sorted(led.items(), key=lambda item: item[0] in self._silent))

    def _find(self, groups: Collection[GroupId]) -> Mapping[GroupId, KafkaError]:
        """Look up the coordinators that are not known; the errors of those that could not be found."""
        unknown = [group for group in groups if group not in self._addresses]
        errors: dict[GroupId, KafkaError] = {}
        for key, found in self._cluster.coordinators(CoordinatorKind.GROUP, unknown, self._timeout_s):
            group = GroupId(key)
            if found.code == NONE:
                self._addresses[group] = found.address
            else:
                action, right = f"find the coordinator of group {group}", Need.DESCRIBE_GROUP.of(group)
                errors[group] = self._cluster.error(found.code, action, right, message=found.message)
        return errors


def _chunks(groups: Collection[GroupId]) -> list[list[GroupId]]:
    left = iter(groups)
    made = []
    while chunk := list(islice(left, KEYS_PER_REQUEST)):
        made.append(chunk)
    return made


def _is_later(result: object) -> bool:
    return isinstance(result, KafkaError) and result.code in NOT_READY
