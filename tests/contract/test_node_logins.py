"""A node whose login is refused for a while is no member of its group, and takes part again afterwards."""

import logging
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.kafka.groups.worker_group import GroupOptions, WorkerGroup
from sparkmirror.mirror.elected_flows import ElectedFlows
from sparkmirror.mirror.flow_runs import FlowRun
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from tests.support.secured_broker import SecuredBroker, add_scram_users, login
from tests.support.waiting import await_value

WAIT_S: Final = 60.0
USER: Final = "node"
OPTIONS: Final = GroupOptions("logins", heartbeat_interval_s=0.4, session_timeout_s=6.0)


def test_a_node_takes_part_again_when_its_login_is_mended(secured: SecuredBroker, tmp_path: Path) -> None:
    """Sessions end every 3 s. It must not end: other groups of its process have other logins."""
    secrets = tmp_path / "secrets"
    add_scram_users(secured.cluster.bootstrap_servers, USER, password="right")

    def write(password: str) -> None:
        secrets.write_text(f"password = {password}\n")

    write("right")
    settings = secured.settings("SHORT", login("SCRAM-SHA-512", USER, f"${{file:{secrets}:password}}"))
    group = WorkerGroup(settings, OPTIONS, "http://node:8083/", lambda _: None)

    def state() -> str:
        return f"{group.membership}, {group.failure}, {group.trouble}"

    group.start()
    try:
        await_value(lambda: group.membership.is_leader, WAIT_S, state)
        write("wrong")
        trouble = await_value(lambda: group.trouble, WAIT_S, state)
        assert isinstance(trouble, AuthenticationError)
        assert f"refused the login of {USER}" in str(trouble)
        await_value(lambda: not group.membership.is_leader, WAIT_S, state)
        write("right")
        await_value(lambda: group.membership.is_leader, WAIT_S, state)
        assert group.failure is None
    finally:
        group.leave()


def test_why_a_shared_flow_runs_nowhere_is_told_once(
    secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    written = {f"B.{key}": value for key, value in login("PLAIN", password="wrong").items()}
    written |= {"clusters": "A, B", "A.bootstrap.servers": "a:9092", "A->B.enabled": "true"}
    written["B.bootstrap.servers"] = f"{HOST}:{secured.ports['LOGIN']}"
    (flow,) = [flow for flow in MirrorMakerConfig(Properties(written), {}).flows() if flow.flow.target == "B"]

    def make(_: ConfiguredFlow) -> FlowRun:
        raise AssertionError

    shared = ElectedFlows([configured_flow(flow)], make, shared=True)
    shared.start()
    try:

        def told() -> list[str]:
            shared.check()
            return [each for each in caplog.messages if "its group can't be reached: " in each]

        await_value(lambda: bool(told()), WAIT_S, lambda: caplog.text)
        shared.check()
        assert len(told()) == 1
        assert "refused the login of alice by PLAIN" in told()[0]
    finally:
        shared.stop()
