"""Takes requests apart and gives each to the part of the cluster that answers it."""

import struct
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer

from tests.memory import fetching, groups, producing, topics, transactions

if TYPE_CHECKING:
    from tests.memory.cluster import MemoryBroker

_HEAD = struct.Struct(">hhi")
_ID = struct.Struct(">i")
_ID_AT: Final = 4
"""The place of the correlation id in a request."""
_CACHED: Final = 1 << 12
_ENCODED: Final[dict[Hashable, bytes]] = {}
"""Few, and the same for all clusters: what they are of is in the key."""
_REPEATED: Final = frozenset(
    request.API_KEY
    for request in (
        consumer.ListOffsetsRequest,
        metadata.ApiVersionsRequest,
        metadata.FindCoordinatorRequest,
        metadata.MetadataRequest,
    )
)
_FETCH: Final = consumer.FetchRequest.API_KEY
_UNSUPPORTED_VERSION: Final = 35
_API_VERSIONS: Final = 18

Reply = Any
"""A response of kafka-python, or None: the handler replies later."""


class Exchange:
    """One request and the way back for its response."""

    def __init__(self, broker: "MemoryBroker", frame: bytes, respond: Callable[[bytes, float], None]) -> None:
        self.broker = broker
        self.cluster = broker.cluster
        self.api_key, self.version, self.correlation_id = _HEAD.unpack_from(frame)
        self.frame = frame
        self.request: Any = None
        self._respond = respond

    def reply(self, response: Any, told: Callable[[], None] = lambda: None) -> None:
        """Reply, at once; a response that a quota throttles says for how long the connection is muted.

        `told` is called if the client gets this response, and not an empty one.
        """
        encoded = self._encoded(response)
        throttle_ms = self.cluster.quotas.throttle_ms(self.api_key, len(self.frame), len(encoded))
        if throttle_ms and hasattr(response, "throttle_time_ms"):
            if self.api_key == _FETCH:
                response, told = fetching.throttled(self), lambda: None
                self._encoded(response)
            response.throttle_time_ms = throttle_ms
            encoded = bytes(response.encode(header=True))
        told()
        self._respond(encoded, throttle_ms / 1000)

    def reply_as_before(self, what: Hashable, response: Callable[[], Any]) -> None:
        """Reply with one that is the same each time but for the correlation id: it is encoded once."""
        if self.cluster.quotas.are_set:
            self.reply(response())
            return
        key = what, self.version
        encoded = _ENCODED.get(key)
        if encoded is None:
            encoded = _ENCODED[key] = self._encoded(response())
        self._respond(_ID.pack(self.correlation_id) + encoded[_ID.size :], 0.0)

    def _encoded(self, response: Any) -> bytes:
        response.API_VERSION = self.version
        response.with_header(correlation_id=self.correlation_id)
        return bytes(response.encode(header=True))


class Handled(NamedTuple):
    request_class: Any
    low: int
    high: int
    handler: Callable[[Exchange], Reply]


def answer(exchange: Exchange) -> None:
    """Unknown requests close the connection, as a broker's do; here they are a test's mistake."""
    handled = HANDLED[exchange.api_key]
    if exchange.api_key == _API_VERSIONS and exchange.version > handled.high:
        exchange.version = 0
        exchange.reply(_api_versions_of(exchange, _UNSUPPORTED_VERSION))
        return
    assert handled.low <= exchange.version <= handled.high, (handled.request_class.name, exchange.version)
    frame = exchange.frame
    exchange.request = (
        _decoded_before(exchange.api_key, exchange.version, frame[:_ID_AT], frame[_ID_AT + _ID.size :])
        if exchange.api_key in _REPEATED
        else _decoded(exchange.api_key, exchange.version, frame)
    )
    response = handled.handler(exchange)
    if response is not None:
        exchange.reply(response)


def _decoded(api_key: int, version: int, frame: bytes) -> Any:
    return HANDLED[api_key].request_class.decode(memoryview(frame), version=version, header=True)


@lru_cache(_CACHED)
def _decoded_before(api_key: int, version: int, before: bytes, after: bytes) -> Any:
    """A request that is the same as others but for its correlation id. Handlers don't change it."""
    return _decoded(api_key, version, before + bytes(_ID.size) + after)


def _api_versions(exchange: Exchange) -> Reply:
    what = "ApiVersions", exchange.cluster.transaction_version
    exchange.reply_as_before(what, lambda: _api_versions_of(exchange))


def _api_versions_of(exchange: Exchange, error: int = 0) -> Reply:
    response = metadata.ApiVersionsResponse
    feature = response.FinalizedFeatureKey(
        name="transaction.version",
        min_version_level=exchange.cluster.transaction_version,
        max_version_level=exchange.cluster.transaction_version,
    )
    return response(
        error_code=error,
        api_keys=[
            response.ApiVersion(api_key=key, min_version=handled.low, max_version=handled.high)
            for key, handled in HANDLED.items()
        ],
        finalized_features_epoch=1,
        finalized_features=[feature] if exchange.cluster.transaction_version else [],
    )


HANDLED: Final[Mapping[int, Handled]] = {
    handled.request_class.API_KEY: handled
    for handled in (
        Handled(producer.ProduceRequest, 3, 13, producing.produce),
        Handled(consumer.FetchRequest, 4, 13, fetching.fetch),
        Handled(consumer.ListOffsetsRequest, 1, 7, topics.list_offsets),
        Handled(metadata.MetadataRequest, 0, 12, topics.describe),
        Handled(consumer.OffsetForLeaderEpochRequest, 2, 4, topics.offset_for_leader_epoch),
        Handled(admin.DescribeProducersRequest, 0, 0, topics.describe_producers),
        Handled(metadata.ApiVersionsRequest, 0, 4, _api_versions),
        Handled(admin.CreateTopicsRequest, 2, 7, topics.create),
        Handled(admin.DeleteTopicsRequest, 1, 6, topics.delete),
        Handled(admin.DeleteRecordsRequest, 0, 2, topics.delete_records),
        Handled(admin.CreatePartitionsRequest, 0, 3, topics.create_partitions),
        Handled(admin.DescribeConfigsRequest, 1, 4, topics.describe_configs),
        Handled(admin.IncrementalAlterConfigsRequest, 0, 1, topics.alter_configs),
        Handled(metadata.FindCoordinatorRequest, 0, 6, groups.find_coordinator),
        Handled(producer.InitProducerIdRequest, 0, 5, transactions.init_producer_id),
        Handled(producer.AddPartitionsToTxnRequest, 0, 3, transactions.add_partitions),
        Handled(producer.EndTxnRequest, 0, 5, transactions.end),
        Handled(producer.WriteTxnMarkersRequest, 1, 1, transactions.write_markers),
        Handled(admin.DescribeTransactionsRequest, 0, 0, transactions.describe),
        Handled(admin.ListTransactionsRequest, 0, 1, transactions.list_open),
        Handled(consumer.JoinGroupRequest, 2, 9, groups.join),
        Handled(consumer.SyncGroupRequest, 1, 5, groups.sync),
        Handled(consumer.HeartbeatRequest, 1, 4, groups.heartbeat),
        Handled(consumer.LeaveGroupRequest, 1, 5, groups.leave),
        Handled(consumer.OffsetCommitRequest, 2, 9, groups.commit_offsets),
        Handled(consumer.OffsetFetchRequest, 1, 9, groups.fetch_offsets),
        Handled(admin.DescribeGroupsRequest, 0, 6, groups.describe),
        Handled(admin.ListGroupsRequest, 0, 5, groups.list_groups),
    )
}
