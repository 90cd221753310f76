"""Heartbeats that a cluster does not take."""

from collections.abc import Iterable, Sequence

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.mirror.heartbeat_connector import HeartbeatConnector
from sparkmirror.settings.configured import configured_flow

PROPERTIES = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "offset-syncs.topic.location": "target",
}


class DeniedWriter(TopicWriter):
    writes = 0

    def write(
        self, topic: str, records: Iterable[LogRecord], *, timeout_s: float | None = None
    ) -> Sequence[int]:
        del records, timeout_s
        self.writes += 1
        raise AuthorizationError(f"write to {topic} on A: TOPIC_AUTHORIZATION_FAILED", 29)


def test_heartbeats_that_a_source_refuses_are_tried_once_and_named_with_their_switch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flows = MirrorMakerConfig(Properties(PROPERTIES), {}).flows()
    (back,) = (flow for flow in map(configured_flow, flows) if flow.flow.source == "B")
    connector = HeartbeatConnector(back, back.heartbeat)
    connector._writer = writer = DeniedWriter(back.worker_client)
    for _ in range(60):
        connector._emit()
    assert writer.writes == 1
    assert connector.emitted == 0
    (line,) = caplog.messages
    assert line.endswith("heartbeats need CREATE and WRITE there, or B->A.emit.heartbeats.enabled=false")
    assert line.startswith("emit heartbeat failed, and is tried again later: write to heartbeats on A")
    (trouble,) = connector.troubles.now
    assert (trouble.what, trouble.word) == ("heartbeats", "not written")
    assert trouble.text == line.partition("again later: ")[2]
