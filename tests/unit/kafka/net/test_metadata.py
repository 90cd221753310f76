"""Metadata responses of brokers that are cut off from their controller."""

from typing import Any

import pytest
from kafka.protocol.metadata import MetadataResponse

from sparkmirror.domain.errors import RetriableError
from sparkmirror.kafka.net.connection import Connection
from tests.support.canned_responses import NAME, cluster_of


class FencedBroker(Connection):
    """A broker that its controller has missed: it names no broker, not even itself."""

    def __init__(self) -> None:
        self.address = f"{NAME}:9092"
        self.closed = False

    def request(self, *_: object, **__: object) -> Any:
        response = MetadataResponse(
            brokers=[],
            cluster_id="id",
            controller_id=-1,
            topics=[MetadataResponse.MetadataResponseTopic(error_code=0, name="orders", partitions=[])],
        )
        return MetadataResponse.decode(response.encode(version=7), version=7)

    def close(self) -> None:
        self.closed = True


def test_a_response_without_brokers_is_an_error_that_may_pass() -> None:
    """Taken for metadata it would leave every partition without a leader, and no broker to ask again."""
    broker = FencedBroker()
    with pytest.raises(RetriableError, match=r"there:9092 knows of no broker that is alive, itself included"):
        cluster_of(broker).learn(["orders"])
    assert broker.closed
