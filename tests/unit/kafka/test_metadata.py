"""What an answer of no use becomes."""

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import RetriableError
from sparkmirror.kafka import metadata
from sparkmirror.kafka.metadata import Metadata, read_metadata


class FrozenBroker:
    """Its controller has missed it: it names nobody, not even itself."""

    address = "b1:9092"
    closed = False

    def close(self) -> None:
        self.closed = True


def test_an_answer_without_brokers_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken for news it would leave every partition without a leader, and nobody to ask again."""
    broker = FrozenBroker()
    monkeypatch.setattr(metadata, "connect_to_any", lambda _: broker)
    monkeypatch.setattr(metadata, "request_metadata", lambda *_: Metadata("id", partitions={"orders": 1}))
    with pytest.raises(RetriableError, match=r"b1:9092 knows of no broker that is alive, itself included"):
        read_metadata(ConnectionSettings((("b1", 9092),)), ["orders"])
    assert broker.closed
