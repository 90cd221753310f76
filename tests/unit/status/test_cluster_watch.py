"""Outages of a cluster, as they are logged and shown."""

import logging

import pytest

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.status.cluster_watch import ClusterWatch

SETTINGS = ConnectionSettings(bootstrap_servers=(("localhost", 1),))


class Cluster:
    """Answers while it is up."""

    def __init__(self) -> None:
        self.is_up = True
        self.now = 0.0

    def ask(self) -> None:
        if not self.is_up:
            raise DisconnectedError("refused")


def test_an_outage_is_logged_when_it_begins_once_a_minute_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cluster = Cluster()
    flow = Flow(Alias("here"), Alias("there"))
    watch = ClusterWatch(flow, flow.target, SETTINGS, clock=lambda: cluster.now, ask=cluster.ask)
    assert (watch.cluster, watch.is_up) == ("there", None)
    seen = []
    for second in range(0, 200, 2):
        cluster.now, cluster.is_up = float(second), not 10 <= second < 140
        watch.ask()
        seen.append(watch.is_up)
    assert seen == [True] * 5 + [False] * 65 + [True] * 30
    assert caplog.messages == [
        "there does not answer: refused; retrying",
        "there has not answered for 60 s: refused",
        "there has not answered for 120 s: refused",
        "there answers again after 130 s",
    ]
