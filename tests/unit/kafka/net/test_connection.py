"""Connection on a cluster in memory, in virtual time."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka.protocol.metadata import ApiVersionsRequest

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.kafka.net.connection import Connection
from tests.memory.client_run import ClientRun, client_run
from tests.memory.network import Fate


@pytest.fixture
def run() -> Iterator[ClientRun]:
    with client_run() as made:
        yield made


def test_broker_that_accepts_and_does_not_respond_is_given_up_after_the_connect_timeout(
    run: ClientRun,
) -> None:
    settings = replace(run.connection(run.cluster("hung")), connect_timeout_s=2.0, request_timeout_s=30.0)
    run.faults.inject(ApiVersionsRequest.API_KEY, Fate.SILENCE)
    began = run.time.time()
    with pytest.raises(DisconnectedError, match="did not answer"):
        Connection.open(*settings.bootstrap_servers[0], settings)
    assert run.time.time() - began < 2.1


def test_connection_that_could_not_be_negotiated_is_closed(run: ClientRun) -> None:
    settings = run.connection(run.cluster("lost"))
    run.faults.inject(ApiVersionsRequest.API_KEY, Fate.RESPONSE_LOST)
    with pytest.raises(DisconnectedError, match="closed the connection"):
        Connection.open(*settings.bootstrap_servers[0], settings)
    Connection.open(*settings.bootstrap_servers[0], settings).close()
