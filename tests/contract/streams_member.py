"""A member of a streams group (KIP-1071), made of bare requests: confluent-kafka has no such client."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import GroupId
from sparkmirror.kafka.groups.consumer_groups import Groups
from sparkmirror.kafka.groups.group_coordinators import NOT_READY
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.wire.error_codes import NONE
from sparkmirror.kafka.wire.primitives import (
    INT32,
    NO_TAGS,
    Reader,
    array_size,
    null_string,
    request_header,
    string,
)
from tests.support.broker_requests import asking
from tests.support.waiting import await_value

_STREAMS_GROUP_HEARTBEAT: Final = 88
_VERSION: Final = 0
_JOIN, _LEAVE = 0, -1
_UNCHANGED: Final = -1
_REBALANCE_TIMEOUT_MS: Final = 60_000
_CORRELATION: Final = 88
_WAIT_S: Final = 60.0
_EMPTY: Final = array_size(0, compact=True)
_NULL: Final = null_string(compact=True)
_PRESENT, _ABSENT = b"\x01", b"\xff"
"""Precedes a nullable struct."""
_FALSE: Final = b"\x00"
_BY_NAME_MAX: Final = 9
"""The last version of OffsetCommit that identifies topics by name."""


class StreamsMember:
    """A member that reads one topic, in a topology of one stateless subtopology."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group
        self._id = str(uuid.uuid4())
        self._epoch = _JOIN

    def join(self, topic: str) -> None:
        await_value(lambda: self._heartbeat(_JOIN, topic) == NONE, _WAIT_S, lambda: "no coordinator")

    def leave(self) -> None:
        assert self._heartbeat(_LEAVE) == NONE

    def commit(self, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 as this member."""
        wanted = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._id,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[
                wanted(
                    name=topic,
                    partitions=[
                        wanted.OffsetCommitRequestPartition(
                            partition_index=0,
                            committed_offset=offset,
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )
        response = self._connection.request(
            request, OffsetCommitResponse, timeout_s=_WAIT_S, version_max=_BY_NAME_MAX
        )
        assert response.topics[0].partitions[0].error_code == NONE

    def _heartbeat(self, epoch: int, topic: str | None = None) -> int:
        """Send a heartbeat; returns its error if that is a transient one."""
        frame = self._request(epoch, topic)
        answer = self._connection.ask([INT32.pack(len(frame)), frame], "StreamsGroupHeartbeat", _WAIT_S)
        reader = Reader(answer, flexible=True)
        assert reader.int32() == _CORRELATION
        reader.skip_tags()
        reader.int32()  # throttle time
        error, message, _ = reader.int16(), reader.string(), reader.string()
        assert error == NONE or error in NOT_READY, f"error {error}: {message}"
        self._epoch = reader.int32()
        return error

    def _request(self, epoch: int, topic: str | None) -> bytes:
        is_joining = topic is not None
        header = request_header(
            _STREAMS_GROUP_HEARTBEAT, _VERSION, _CORRELATION, self._connection.client_id, flexible=True
        )
        return b"".join(
            [
                header,
                string(self._group, compact=True),
                string(self._id, compact=True),
                INT32.pack(epoch),
                INT32.pack(0),  # endpoint information epoch
                _NULL * 2,  # no instance id, no rack id
                INT32.pack(_REBALANCE_TIMEOUT_MS if is_joining else _UNCHANGED),
                _PRESENT + _topology(topic) if topic is not None else _ABSENT,
                (_EMPTY if is_joining else _NULL) * 3,  # tasks: active, standby, warm-up
                string(self._id, compact=True),  # process id
                _ABSENT,  # no endpoint for queries
                _NULL * 3,  # no client tags, task offsets or task end offsets
                _FALSE,
                NO_TAGS,
            ]
        )


def _topology(topic: str) -> bytes:
    one = array_size(1, compact=True)
    subtopology = string("0", compact=True) + one + string(topic, compact=True) + _EMPTY * 5 + NO_TAGS
    return INT32.pack(0) + one + subtopology + NO_TAGS


@contextmanager
def streaming(cluster: LocalCluster, group: str, topic: str) -> Iterator[StreamsMember]:
    """Join on the cluster's only broker; the member leaves at the end of the block."""
    with asking(cluster) as asker, closing(Groups(replace(asker.settings, alias="here"))) as groups:
        groups.committed([GroupId(group)])  # lets a new cluster create a coordinator
        member = StreamsMember(asker.connection, group)
        member.join(topic)
        yield member
        member.leave()
