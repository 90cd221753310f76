"""Connection on a cluster in memory, in virtual time."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka.protocol.metadata import ApiVersionsRequest

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.kafka.net.connection import Connection
from sparkmirror.kafka.net.metadata import request_metadata
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


def test_a_request_behind_a_throttled_response_waits_and_does_not_time_out(run: ClientRun) -> None:
    """The broker has muted the connection for longer than a request may take (KIP-219)."""
    cluster = run.cluster("busy")
    settings = replace(run.connection(cluster), request_timeout_s=5.0)
    connection = Connection.open(*settings.bootstrap_servers[0], settings)
    cluster.quotas.requests_s = 60.0
    request_metadata(connection, [], 5.0)
    cluster.quotas.requests_s = 0.0
    assert 59.0 < connection.throttled_s <= 60.0
    began = run.time.time()
    request_metadata(connection, [], 5.0)
    assert 59.0 < run.time.time() - began < 61.0
    connection.close()
